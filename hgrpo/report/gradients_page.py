"""Makes the page about gradients: which part of the loss drives a policy, by buckets of groups."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from hgrpo.errors import UserError, one_line
from hgrpo.learning.validation import greedy_validation
from hgrpo.report.figures.gradients import SHOWN, TITLES
from hgrpo.report.page_environment import page_environment
from hgrpo.report.svg import inline
from hgrpo.report.words import DASH, MINUS, listing

_NAMES = {name: text for name, (text, _) in SHOWN.items()} | {"regularisers": "KL and entropy"}
_PLACES = {"lowest": "least", "highest": "most"}


def read_tables(paths: Sequence[Path], columns: Sequence[str]) -> pd.DataFrame:
    """The tables of all jobs, with the columns method, seed and round out of their folders' names.

    Args:
        columns: some that every table must have.

    Raises:
        UserError: a file is not such a table; the message names it.
    """
    parts = []
    for path in paths:
        try:
            table = pd.read_csv(path, keep_default_na=False, na_values=["nan", ""])
            table = table[[*columns, *table.columns.drop(list(columns))]]
        except (OSError, ValueError, KeyError) as error:
            raise UserError(f"{path}: not a table of gradients ({one_line(error)})") from None
        parts.append(table.assign(**_job(path)))
    return pd.concat(parts, ignore_index=True)


def read_success(paths: Sequence[Path]) -> pd.DataFrame:
    """Greedy success on the validation panel: columns method, round, seeds and success.

    Raises:
        UserError: a file is not an evaluation's summary with that panel; the message names it.
    """
    rows = [_job(path) | {"success": greedy_validation(path)} for path in paths]
    table = pd.DataFrame(rows, columns=["method", "seed", "round", "success"])
    found = table.groupby(["method", "round"], as_index=False, sort=False)
    return found.agg(seeds=("seed", "nunique"), success=("success", "mean"))


def _job(path: Path) -> dict[str, object]:
    """The job that wrote a file, by the names of its folders."""
    method, seed, number = path.parts[-4:-1]
    return {
        "method": method,
        "seed": int(seed.removeprefix("seed_")),
        "round": int(number.removeprefix("round_")),
    }


def headline(dominance: pd.DataFrame) -> str:
    """What the page says first: how often which part dominates where returns differ least."""
    verdicts = dominance.loc[dominance["place"] == "lowest", "verdict"]
    found = [f"{said} in {number}" for said, number in verdicts.value_counts().items()]
    return f"Of {len(verdicts)} measurements where returns differ least: {listing(found)}"


def render(
    study: str,
    labels: Mapping[str, str],
    steps: int,
    slopes: pd.DataFrame,
    dominance: pd.DataFrame,
    success: pd.DataFrame,
    figures: Sequence[Mapping],
) -> str:
    """The page as HTML text; the same inputs give the same text.

    Args:
        labels: arm -> its name for readers.
        steps: optimiser batches in a round.
        slopes, dominance: from `hgrpo.evaluation.gradients.slopes`.
        success: from `read_success`.
        figures: each with name, section, title, caption, alt and svg.
    """
    environment = page_environment()
    environment.filters["number"] = _number
    return environment.get_template("gradients.html.j2").render(
        study=study,
        headline=headline(dominance),
        **{
            section: [
                figure | {"svg": inline(figure["svg"], _id(figure["name"]), figure["alt"])}
                for figure in figures
                if figure["section"] == section
            ]
            for section in ("gradients", "policies")
        },
        success=_for_readers(success, labels, steps),
        slopes=_for_readers(slopes[slopes["component"].isin(list(_NAMES))], labels, steps),
        dominance=_for_readers(dominance, labels, steps),
    )


def _for_readers(
    table: pd.DataFrame, labels: Mapping[str, str], steps: int
) -> list[dict[str, object]]:
    """Rows with the words that the page shows."""
    rows = []
    for row in table.to_dict("records"):
        words = {
            "label": labels.get(row["method"], row["method"]),
            "steps": row["round"] * steps,
            "groups": TITLES.get(row.get("pass"), ""),
            "component": _NAMES.get(row.get("component"), ""),
            "place": _PLACES.get(row.get("place"), ""),
        }
        rows.append(row | words)
    return rows


def _id(name: str) -> str:
    return name.replace("/", "-")


def _number(value: float) -> str:
    return DASH if pd.isna(value) else f"{value:.3g}".replace("-", MINUS)
