"""The page of all studies, which begins with verdicts on the original's conclusions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from hgrpo.report.style import read_index
from hgrpo.report.svg import inline, page_environment
from hgrpo.report.words import DASH, MINUS, p_value
from hgrpo.sandbox.studies.results import ARMS, FIGURES, PAIRS, read_table
from hgrpo.sandbox.studies.statistics import FAR
from hgrpo.sandbox.studies.study import Metric, SandboxStudy

_BETTER = {
    "lower": "lower is better",
    "higher": "higher is better",
    "neither": "neither direction is better",
}


@dataclass(frozen=True)
class StudyReport:
    """A study with its tables and figures."""

    name: str
    study: SandboxStudy
    arms: pd.DataFrame
    pairs: pd.DataFrame
    figures: Sequence[Mapping[str, str]]


def read_report(name: str, study: SandboxStudy, folder: Path) -> StudyReport:
    """Read a study's tables and figures from its folder of results.

    Raises:
        UserError: a file is missing or damaged.
    """
    figures = []
    for entry in read_index(folder / FIGURES):
        svg = (folder / FIGURES / f"{entry['name']}.svg").read_text(encoding="utf-8")
        figures.append({**entry, "svg": inline(svg, f"{name}-{entry['name']}", entry["alt"])})
    return StudyReport(name, study, read_table(folder / ARMS), read_table(folder / PAIRS), figures)


def render(reports: Sequence[StudyReport], tiny: bool = False) -> str:
    """Render the page as HTML. The output is deterministic.

    Args:
        tiny: whether to add a warning that the runs were too short to be meaningful.
    """
    environment = page_environment()
    environment.filters["number"] = number
    environment.filters["signed"] = signed
    environment.filters["p"] = p_value
    return environment.get_template("sandbox.html.j2").render(
        studies=[_study(each) for each in reports],
        inferences=_inferences(reports),
        tiny=tiny,
        far=FAR,
    )


def _study(report: StudyReport) -> dict[str, Any]:
    pairs = report.pairs
    kinds = pairs["kind"] if len(pairs) else pd.Series(dtype=str)
    rows = report.arms.assign(is_far=report.arms["far"].abs() > FAR).to_dict("records")
    metrics: dict[str, list[dict]] = {}
    for row in rows:
        metrics.setdefault(row["metric"], []).append(row)
    return {
        "name": report.name,
        "question": report.study.question,
        "metric": metric_in_words(report.study.metric),
        "tables": [
            {
                "metric": metric,
                "rows": metric_rows,
                "timed": _has(metric_rows, "reached"),
                "published": _has(metric_rows, "published"),
            }
            for metric, metric_rows in metrics.items()
        ],
        "pairs": pairs[kinds == "pair"].to_dict("records"),
        "has_published": bool(len(pairs) and pairs["published"].notna().any()),
        "has_margin": report.study.metric.margin is not None,
        "noise": pairs[kinds != "pair"].to_dict("records"),
        "figures": report.figures,
    }


def _has(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    return any(not pd.isna(row[column]) for row in rows)


def _inferences(reports: Sequence[StudyReport]) -> list[dict[str, Any]]:
    """The conclusions of the original sandbox, in order, each with the pairs that test it."""
    inferences = []
    for each in reports:
        inference = each.study.inference
        if inference is not None and len(each.pairs):
            tested = [row for row in each.pairs.to_dict("records") if row["said"]]
            inferences.append(
                {"number": inference.number, "said": inference.said, "study": each.name}
            )
            inferences[-1] |= {"pairs": tested}
    return sorted(inferences, key=lambda inference: inference["number"])


def metric_in_words(metric: Metric) -> str:
    """Description of the metric on the page."""
    when = " at the end of the run" if metric.is_last else ""
    margin = ""
    if metric.margin is not None:
        margin = f"; differences in means below {metric.margin:g} count as equivalent"
    return f"{metric.text}{when}; {_BETTER[metric.better]}{margin}"


def number(value: float) -> str:
    """Format with three significant digits, or as an integer if at least 1000. NaN is a dash."""
    return _digits(value, "")


def signed(value: float) -> str:
    """As `number`, always with a sign."""
    return _digits(value, "+")


def _digits(value: float, sign: str) -> str:
    if pd.isna(value):
        return DASH
    digits = ",.0f" if abs(value) >= 999.5 else ".3g"
    return format(value, sign + digits).replace("-", MINUS)
