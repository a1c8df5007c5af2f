"""Recorded WebShop sessions, played again in our engine to compare it with the original.

Every line of a log is one session, as JSON: {"goal": i, "actions": [...], "observations": [...],
"reward": r}. `observations` holds the text after every action, or one more with the first page in
front; `reward` is what the session was paid in the end.

Three things are not compared. The original draws price limits anew in every process, so neither
the limits nor the part of the reward that depends on them can agree. The page after the purchase
states the reward, which is compared as a number.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, FiniteFloat, StrictInt, StrictStr, ValidationError

from hgrpo.errors import UserError
from hgrpo.games.webshop import pages
from hgrpo.games.webshop.prices import LIMIT
from hgrpo.games.webshop.recorded import reward_differs
from hgrpo.games.webshop.session import Session
from hgrpo.games.webshop.shop import Shop
from hgrpo.games.webshop.tables import GoalList

_OTHER_MODE = " (it is that of the other mode, `text` or `text_rich`)"


class _Session(BaseModel):
    goal: StrictInt
    actions: list[StrictStr]
    observations: list[StrictStr]
    reward: FiniteFloat


@dataclass(frozen=True)
class Recorded:
    """One recorded session; other keys of its line are ignored.

    Attributes:
        line: the session's line in the file, from 1.
        goal: index of the goal.
        observations: one after every action, and the first page in front if it was recorded.
        reward: what the session paid in the end.
    """

    line: int
    goal: int
    actions: list[str]
    observations: list[str]
    reward: float


def read_sessions(path: Path) -> Iterator[Recorded]:
    """Read the sessions of a log.

    Raises:
        UserError: the file is missing, or a line is not a session.
    """
    try:
        # Not splitlines: JSON may hold other line ends unescaped. The mark of UTF-8 is dropped.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error})") from None
    if not any(line.strip() for line in lines):
        raise UserError(f"{path}: no sessions in it")
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _session(line, number, f"{path}:{number}")


def _session(line: str, number: int, place: str) -> Recorded:
    try:
        recorded = Recorded(line=number, **_Session.model_validate_json(line).model_dump())
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise UserError(f"{place}: {f'{key}: ' if key else ''}{first['msg']}") from None
    spare = len(recorded.observations) - len(recorded.actions)
    if spare not in (0, 1):
        raise UserError(
            f"{place}: {len(recorded.actions)} actions go with as many observations or one more, "
            f"not with {len(recorded.observations)}"
        )
    return recorded


def compare(recorded: Recorded, shop: Shop, goals: GoalList, rich: bool) -> str | None:
    """The first difference between the recording and our engine's answers; None if they agree.

    Args:
        rich: the observations are `text_rich`.

    Raises:
        UserError: the shop has no goal of that number.
    """
    try:
        goal = goals.goal(recorded.goal)
    except UserError as error:
        raise UserError(f"line {recorded.line}: {error}") from None
    session = Session(shop, goal)
    expected = list(recorded.observations)
    if len(expected) > len(recorded.actions):
        first = expected.pop(0)
        difference = _texts(first, _render(session, rich))
        if difference:
            other = "" if _texts(first, _render(session, not rich)) else _OTHER_MODE
            return f"first page: {difference}{other}"
    for turn, (action, text) in enumerate(zip(recorded.actions, expected, strict=True), 1):
        if session.bought is not None:
            return f"action {turn}: {action!r} comes after the purchase"
        session.act(action)
        # The last page states the reward, which is compared below.
        difference = None if session.bought else _texts(text, _render(session, rich))
        if difference:
            return f"action {turn}, {action!r}: {difference}"
    if reward_differs(recorded.reward, session):
        paid = session.bought.total if session.bought else 0.0
        return f"reward: recorded {recorded.reward}, here {paid} ({session.bought})"
    return None


def _render(session: Session, rich: bool) -> str:
    if rich:
        return pages.rich(session.page, session.chosen, session.opened, session.query)
    return pages.text(session.page)


def _texts(recorded: str, ours: str) -> str | None:
    """Where two texts differ first, price limits left out; None if they are alike."""
    theirs, ours = LIMIT.sub("", recorded), LIMIT.sub("", ours)
    if theirs == ours:
        return None
    pairs = zip(theirs, ours, strict=False)
    place = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(theirs), len(ours)))
    start = max(0, place - 20)
    return f"recorded ...{theirs[start : place + 40]!r}, here ...{ours[start : place + 40]!r}"
