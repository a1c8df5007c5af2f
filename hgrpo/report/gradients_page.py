"""Renders a page that shows, by bucket of groups, which part of the loss dominates."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from hgrpo.errors import UserError, one_line
from hgrpo.evaluation.gradients.slopes import INCONCLUSIVE
from hgrpo.evaluation.gradients.table import PASSES, REGULARISERS
from hgrpo.learning.stops import greedy_validation
from hgrpo.report.figures.gradient_buckets import policy_name
from hgrpo.report.figures.gradients import DRAWN, TITLES
from hgrpo.report.svg import inline, page_environment
from hgrpo.report.words import DASH, MINUS, listing, p_value

_NAMES = {
    **{name: text for name, (text, _) in DRAWN.items()},
    "task_unwhitened": "task, unwhitened advantages",
    REGULARISERS: "KL and entropy",
}
PLACES = {"lowest": "least", "highest": "most"}


class GradientArm(NamedTuple):
    """An arm's label and number of optimiser batches per round."""

    label: str
    steps: int


def read_tables(paths: Sequence[Path], columns: Sequence[str]) -> pd.DataFrame:
    """Concatenate the tables of all jobs, with the columns method, seed and round added.

    Args:
        columns: columns required in every table.

    Raises:
        UserError: a file is not a table with these columns.
    """
    parts = []
    for path in paths:
        try:
            table = pd.read_csv(path, keep_default_na=False, na_values=["nan", ""])
            table = table[[*columns, *table.columns.drop(list(columns))]]
        except (OSError, ValueError, KeyError) as error:
            raise UserError(f"{path}: expected a table of gradients ({one_line(error)})") from None
        parts.append(table.assign(**_job(path)))
    return pd.concat(parts, ignore_index=True)


def read_success(paths: Sequence[Path]) -> pd.DataFrame:
    """Greedy success on the validation panel: columns method, round, seeds and success.

    Raises:
        UserError: a file is not a summary of an evaluation on that panel.
    """
    rows = [_job(path) | {"success": greedy_validation(path)} for path in paths]
    table = pd.DataFrame(rows, columns=["method", "seed", "round", "success"])
    policies = table.groupby(["method", "round"], as_index=False, sort=False)
    return policies.agg(seeds=("seed", "nunique"), success=("success", "mean"))


def _job(path: Path) -> dict[str, object]:
    method, seed, number = path.parts[-4:-1]
    return {
        "method": method,
        "seed": int(seed.removeprefix("seed_")),
        "round": int(number.removeprefix("round_")),
    }


def headline(dominance: pd.DataFrame) -> str:
    """Headline: the dominant part of the loss in the bucket with the smallest return deviation.

    Rows before the filter are used, because the filter removes groups with equal returns.
    """
    chosen = (dominance["place"] == "lowest") & (dominance["pass"] == PASSES[0])
    verdicts = dominance.loc[chosen, "verdict"]
    policies = "policy" if len(verdicts) == 1 else "policies"
    counts = verdicts.replace(INCONCLUSIVE, "it is inconclusive which dominates").value_counts()
    parts = [
        f"in {count} of {len(verdicts)} {policies} {verdict}" for verdict, count in counts.items()
    ]
    return f"In the bucket with the smallest deviation of returns: {listing(parts)}"


def render(
    study: str,
    arms: Mapping[str, GradientArm],
    tables: Mapping[str, pd.DataFrame],
    figures: Sequence[Mapping],
) -> str:
    """Render the page as HTML, deterministically.

    Args:
        tables: `buckets`, `slopes` and `dominance`, from the functions of
            `evaluation.gradients.slopes`, and `success`, from `read_success`.
        figures: mappings with name, section, title, caption, alt and svg. The section of a single
            policy's figures is its `policy_name`.
    """
    environment = page_environment()
    environment.filters["number"] = number
    environment.filters["p"] = p_value
    by_section: dict[str, list[Mapping]] = {}
    for figure in figures:
        name = figure["name"].replace("/", "-")
        drawn = figure | {"svg": inline(figure["svg"], name, figure["alt"])}
        by_section.setdefault(figure["section"], []).append(drawn)
    policies = [
        {
            "title": f"{arms[method].label} after {arms[method].steps * round} steps",
            "rows": _for_readers(table, arms),
            "figures": by_section.get(policy_name(method, arms[method].steps * round), []),
        }
        for (method, round), table in tables["buckets"].groupby(["method", "round"], sort=False)
    ]
    return environment.get_template("gradients.html.j2").render(
        study=study,
        headline=headline(tables["dominance"]),
        figures=by_section["gradients"],
        policies=policies,
        **{name: _for_readers(tables[name], arms) for name in ("success", "slopes", "dominance")},
    )


def _for_readers(table: pd.DataFrame, arms: Mapping[str, GradientArm]) -> list[dict[str, object]]:
    rows = []
    for row in table.to_dict("records"):
        arm = arms.get(row["method"])
        words = {
            "label": arm.label if arm else row["method"],
            "steps": row["round"] * arm.steps if arm else 0,
            "of": TITLES.get(row.get("pass"), ""),
            "part": _NAMES.get(row.get("component"), ""),
            "place": PLACES.get(row.get("place"), ""),
        }
        rows.append(row | words)
    return rows


def number(value: float) -> str:
    """Format with three significant digits and a true minus sign; a dash for NaN."""
    return DASH if pd.isna(value) else f"{value:.3g}".replace("-", MINUS)
