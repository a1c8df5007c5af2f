"""Reads human trajectories in the two official formats.

- Session logs of the web site (`all_trajs.zip`, written by `web_agent_site/app.py`): one file per
  session and one JSON object per page, with `page`, `url`, `goal` and, except for the search page,
  `content`. Actions are not logged, so they are inferred from consecutive pages.
- The imitation file (`il_trajs_finalized_images.jsonl`, read by `train_choice_il.py` in
  `baseline_models`): one JSON object per trajectory, with `states` and `actions` but no rewards.
"""

import ast
import itertools
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from hgrpo.errors import BROKEN_ZIP, UserError
from hgrpo.games.panels import leave_out
from hgrpo.games.user_path import files_below
from hgrpo.games.webshop.json_stream import checked

_SUB_PAGES = ("description", "features", "reviews", "attributes")
_ACTION = re.compile(r"(search|click)\[.+\]", re.DOTALL)
_GOAL = re.compile(
    r"Instruction:\s*(\S.*?)\s*\[button\] search \[button_\]", re.DOTALL | re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class HumanTrajectory:
    """A human's actions for one instruction; `goal` is the instruction with its price limit.

    `actions` contains at least one `search[...]` or `click[...]`, with the file's capitalisation.
    `reward` is None if nothing was bought, or if the format has no rewards.
    """

    goal: str
    actions: tuple[str, ...]
    reward: float | None


def read(path: Path, counts: Counter[str]) -> Iterator[HumanTrajectory]:
    """Yield the trajectories in a file, or in all `.jsonl` files of a folder or zip, in name order.

    Args:
        counts: number of excluded trajectories per reason, and number of repeated pages; updated in
            place.

    Raises:
        UserError: the path cannot be read or contains no `.jsonl` file.
    """
    try:
        for name, lines in _files(path):
            yield from _trajectories(_rows(name, lines), counts, path.parent)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None
    except BROKEN_ZIP as error:
        raise UserError(f"{path}: the archive is damaged or truncated ({error})") from None


def _files(path: Path) -> Iterator[tuple[str, Iterable[bytes]]]:
    if not path.exists():
        raise UserError(f"{path}: file or folder not found")
    if path.is_file() and path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            for name in _chosen(archive.namelist(), path):
                with archive.open(name) as handle:
                    yield f"{path}/{name}", handle
        return
    files = [path]
    if path.is_dir():
        names = (name for _, name in files_below(path))
        files = [path / name for name in _chosen(names, path)]
    for file in files:
        with file.open("rb") as handle:
            yield str(file), handle


def _chosen(names: Iterable[str], path: Path) -> list[str]:
    """Sorted names of the trajectory files, without the `._` files that macOS creates."""
    files = [name for name in names if name.endswith(".jsonl")]
    chosen = sorted(name for name in files if not Path(name).name.startswith("._"))
    if not chosen:
        raise UserError(f"{path}: contains no .jsonl file")
    return chosen


def _rows(name: str, lines: Iterable[bytes]) -> Iterator[tuple[str, object]]:
    """Yield (location, value) per non-blank line; for invalid JSON, the value is a UserError."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"{name}: line {number}"
        try:
            yield place, json.loads(line)
        except (ValueError, RecursionError) as error:
            yield place, UserError(f"{place}: invalid or truncated JSON ({error})")


def _trajectories(
    rows: Iterator[tuple[str, object]], counts: Counter[str], root: Path
) -> Iterator[HumanTrajectory]:
    head = list(itertools.islice(rows, 2))
    if not head:
        counts["left out: empty file"] += 1
        return
    lines = itertools.chain(head, rows)
    # Check two lines for the keys of a session log, because the first line may be invalid.
    if any(isinstance(row, dict) and row.keys() >= {"page", "url", "goal"} for _, row in head):
        readings = [partial(_session, lines, counts)]
    else:
        readings = (partial(_imitation, *line) for line in lines)
    for reading in readings:
        try:
            yield reading()
        except _LeftOutError as reason:
            counts[f"left out: {reason}"] += 1
        except UserError as error:
            leave_out(counts, "trajectory", error, root)


class _LeftOutError(Exception):
    """Raised if a trajectory cannot be used. The message is the reason, a key of `counts`."""


def _listed(keywords: object) -> object:
    """Parse a list that was logged as text, such as "['red', 'mug']" on item pages."""
    if not isinstance(keywords, str):
        return keywords
    if keywords.startswith("["):
        with suppress(SyntaxError, ValueError):
            return ast.literal_eval(keywords)
    return [keywords]


class _Goal(BaseModel):
    instruction_text: str = Field(pattern=r"\S")


class _Row(BaseModel):
    """One line of a session log. As in the original, `reward` may exceed 1."""

    page: Literal["index", "search_results", "item_page", "item_sub_page", "done"]
    url: str
    goal: _Goal
    content: dict | None = None
    reward: float | None = Field(None, ge=0, allow_inf_nan=False)


class _Search(BaseModel):
    keywords: Annotated[tuple[str, ...], BeforeValidator(_listed)]
    number: int = Field(alias="page")


class _Results(_Search):
    results: tuple[str, ...] = Field(alias="search_result_asins")


class _Choice(BaseModel):
    asin: str = Field(min_length=1)
    options: Annotated[dict[str, str], AfterValidator(lambda chosen: tuple(sorted(chosen.items())))]


class _Item(_Search, _Choice):
    pass


_CONTENTS = {
    "search_results": _Results,
    "item_page": _Item,
    "item_sub_page": _Item,
    "done": _Choice,
}


class _Imitation(BaseModel):
    states: list[str]
    actions: tuple[str, ...]


def _imitation(place: str, line: object) -> HumanTrajectory:
    row = checked(_Imitation, line, place)
    states, actions = row.states, row.actions
    if len(states) != len(actions):
        raise UserError(f"{place}: {len(states)} states, but {len(actions)} actions")
    if not actions:
        raise _LeftOutError("no action")
    if not all(map(_ACTION.fullmatch, actions)):
        raise _LeftOutError("an action is neither search[...] nor click[...]")
    goal = _GOAL.search(states[0])
    if goal is None:
        raise UserError(
            f"{place}: states: no instruction before the search button in the first state"
        )
    return HumanTrajectory(goal[1], actions, None)


@dataclass(frozen=True, slots=True)
class _Page:
    """A page of a session log. Fields that do not apply to this kind of page are empty."""

    kind: str
    keywords: tuple[str, ...] = ()
    number: int = 0
    results: tuple[str, ...] = ()
    asin: str = ""
    options: tuple[tuple[str, str], ...] = ()
    sub_page: str = ""

    @property
    def search(self) -> tuple:
        return self.keywords, self.number

    @property
    def item(self) -> tuple:
        return self.search, self.asin, self.options


def _session(lines: Iterable[tuple[str, object]], counts: Counter[str]) -> HumanTrajectory:
    """Infer a trajectory from a session log; repeated pages, e.g. due to reloads, are merged."""
    rows = [(checked(_Row, row, place), place) for place, row in lines]
    goals = {row.goal.instruction_text for row, _ in rows}
    pages = [_page(row, place) for row, place in rows]
    reward = rows[-1][0].reward if pages[-1].kind == "done" else None
    distinct = [page for page, _ in itertools.groupby(pages)]
    if len(goals) > 1:
        raise _LeftOutError("two goals in one session")
    if pages[0].kind != "index":
        raise _LeftOutError("the session does not begin on the search page")
    if len(distinct) < 2:
        raise _LeftOutError("no action")
    actions = []
    for before, after in itertools.pairwise(distinct):
        action = _action(before, after)
        if action is None:
            raise _LeftOutError(f"unknown transition from {before.kind} to {after.kind}")
        actions.append(action)
    if len(distinct) < len(pages):
        counts["page shown twice in a row: read once"] += len(pages) - len(distinct)
    return HumanTrajectory(goals.pop(), tuple(actions), reward)


def _action(before: _Page, after: _Page) -> str | None:
    match before.kind, after.kind:
        case "index", "search_results" if after.number == 1 and any(after.keywords):
            return f"search[{' '.join(after.keywords)}]"
        case "search_results" | "item_page" | "item_sub_page", "index":
            return "click[back to search]"
        case "search_results", "search_results" if before.keywords == after.keywords:
            return {1: "click[next >]", -1: "click[< prev]"}.get(after.number - before.number)
        case "search_results", "item_page" if (
            before.search == after.search and after.asin in before.results and not after.options
        ):
            return f"click[{after.asin.lower()}]"
        case "item_page", "search_results" if before.search == after.search:
            return "click[< prev]"
        case "item_page", "item_page" if (
            before.search == after.search and before.asin == after.asin
        ):
            return _choice(dict(before.options), dict(after.options))
        case "item_page", "item_sub_page" if before.item == after.item:
            return f"click[{after.sub_page}]"
        case "item_sub_page", "item_page" if before.item == after.item:
            return "click[< prev]"
        case "item_page", "done" if (before.asin, before.options) == (after.asin, after.options):
            return "click[buy now]"
    return None


def _choice(before: dict[str, str], after: dict[str, str]) -> str | None:
    """The click that changes the options `before` to `after`, or None if no single click does."""
    changed = [value for name, value in after.items() if before.get(name) != value]
    return f"click[{changed[0]}]" if len(changed) == 1 and before.keys() <= after.keys() else None


def _page(row: _Row, place: str) -> _Page:
    if row.page == "index":
        return _Page(row.page)
    content = checked(_CONTENTS[row.page], row.content, f"{place}: content")
    sub_page = _sub_page(row.url, place) if row.page == "item_sub_page" else ""
    return _Page(row.page, **vars(content), sub_page=sub_page)


def _sub_page(url: str, place: str) -> str:
    """Extract NAME from a URL `.../item_sub_page/session/asin/keywords/page/NAME/options`."""
    parts = url.partition("/item_sub_page/")[2].split("/")
    name = parts[4].lower() if len(parts) > 4 else ""
    if name not in _SUB_PAGES:
        raise UserError(f"{place}: url: no sub page in {url!r:.60}")
    return name
