"""Rows of the page's tables: gates, other endpoints, thresholds, stopped runs, provenance."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd
import yaml

from hgrpo.errors import UserError
from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.gates import FAILED, OPEN, PASSED
from hgrpo.evaluation.statistics import FEWEST_SEEDS
from hgrpo.games.user_path import user_text
from hgrpo.report.arms import Arms
from hgrpo.report.endpoint_words import amount, endpoint_title, threshold_text
from hgrpo.report.words import (
    DASH,
    MINUS,
    ends,
    listing,
    opponent,
    percent,
    temperature_name,
    with_interval,
)

CLAIMS = {
    "above": "above",
    "below": "below",
    "not_above": "not above",
    "no_difference": "not different",
    "equivalent": "equivalent",
}
# Result of a gate -> the verdict whose style it has.
LOOKS = {PASSED: "better", FAILED: "worse", OPEN: "inconclusive"}
STATED = ("packages", "revision", "code", "python", "hardware", "system")


def verdict_on_gates(table: pd.DataFrame, label: Callable[[str], str]) -> str:
    """A sentence on passed, failed and open gates; "" if there are no gates.

    `table` is `Comparison.gates`, and `label` maps an arm's name to its label.
    """
    if table.empty:
        return ""
    many, results = len(table), table["result"]
    if (results == PASSED).all():
        return "The gate passed." if many == 1 else f"All {many} gates passed."
    worst = FAILED if FAILED in set(results) else OPEN
    arms = listing([label(name) for name in table.loc[results == worst, "method"]])
    if worst == FAILED:
        return (
            f"Gates failed: {arms} ({sum(results == FAILED)} of {many}). A control did not behave "
            "as declared, so the comparisons prove little."
        )
    return (
        f"Gates still open: {arms} ({sum(results == OPEN)} of {many}). A gate requires "
        f"{FEWEST_SEEDS} seeds of its arm."
    )


def gate_rows(comparison: Comparison, arms: Arms) -> list[dict]:
    """One row per gate whose arm is in the report."""
    return [
        {
            "arm": arms[row["method"]],
            "claim": claim(row["expect"], row["points"]),
            "difference": difference(row),
            "power": power(row),
            "n_seeds": row["n_seeds"],
            "result": row["result"],
            "look": LOOKS[row["result"]],
        }
        for row in comparison.gates.to_dict("records")
        if row["method"] in arms.names
    ]


def claim(expect: str, margin: float | None) -> str:
    """State what a gate claims about the difference from the reference; `margin` is in points."""
    text = CLAIMS[expect]
    if margin is None or pd.isna(margin):
        return text
    if expect == "above":
        return f"{text} 0, estimate {margin:g} or more"
    return f"{text} within ±{margin:g}"


def power(row: Mapping) -> str:
    """Text of a gate's power; "" if it is unknown."""
    if pd.isna(row.get("power")):
        return ""
    share = percent(row["power"], 0)
    match row["expect"]:
        case "equivalent":
            return f"passes in {share} at a difference of 0"
        case "above" | "below":
            sign = "+" if row["expect"] == "above" else MINUS
            return f"passes in {share} at {sign}{row['notice']:g}"
    return f"fails in {share} at +{row['notice']:g}"


def difference(row: Mapping) -> str:
    """A gate's difference in points with its interval, if any; a dash if its arm was not run."""
    if pd.isna(row["difference"]):
        return DASH
    return with_interval(row["difference"], row["lower"], row["upper"])


def beside(comparison: Comparison, arms: Arms) -> dict:
    """Table of the endpoints other than the declared one: column titles, and a row per arm.

    Each endpoint has a column for the arm's level and one for the difference from each baseline.
    """
    levels = comparison.endpoints[~comparison.endpoints["declared"]]
    if levels.empty:
        return {}
    others = list(dict.fromkeys(zip(levels["endpoint"], levels["score"], strict=True)))
    levels = levels.set_index(["endpoint", "score", "method", "temperature"]).sort_index()
    compared = comparison.other_endpoints
    baselines, differences = [], {}
    if len(compared):
        keys = ["endpoint", "score", "baseline", "baseline_temperature", "method"]
        differences = compared.set_index(keys)[["difference", "lower", "upper"]].to_dict("index")
        baselines = list(
            dict.fromkeys(zip(compared["baseline"], compared["baseline_temperature"], strict=True))
        )
    titles, rows = [], []
    for endpoint, score in others:
        titles.append(endpoint_title(endpoint, score).capitalize())
        titles += [f"against {opponent(arms, *baseline)}" for baseline in baselines]
    for method, temperature in zip(
        comparison.methods["method"], comparison.methods["temperature"], strict=True
    ):
        cells = []
        for other in others:
            level = levels.loc[(*other, method, temperature)]
            interval = (amount(level[end], other[1]) for end in ("lower", "upper"))
            cells.append(amount(level["mean"], other[1]) + ends(*interval, " ({})"))
            for baseline in baselines:
                row = differences.get((*other, *baseline, method)) if temperature == 0 else None
                cells.append(with_interval(**row) if row else "")
        rows.append({"arm": arms[method], "what": temperature_name(temperature), "cells": cells})
    return {"titles": titles, "rows": rows}


def thresholds(comparison: Comparison, arms: Arms) -> list[dict]:
    """One table per threshold, with the trajectories that each arm needed to reach it."""
    table, score = comparison.thresholds, comparison.protocol.settings.score
    if table.empty:
        return []
    return [
        {
            "threshold": threshold_text(threshold, score),
            "horizon": mine["horizon"].iloc[0],
            "rows": [{"arm": arms[row["method"]], **row} for row in mine.to_dict("records")],
        }
        for threshold, mine in table.groupby("threshold", sort=False)
    ]


def ended_runs(stops: pd.DataFrame, seeds: int) -> dict[str, str]:
    """Describe each arm's runs that were ended by a rule, e.g. "stopped in 2 of 5 runs"."""
    counted = stops.groupby(["method", "status"], sort=False).size()
    by_arm: dict[str, list[str]] = {}
    for (method, status), many in counted.items():
        by_arm.setdefault(method, []).append(f"{status} in {many} of {seeds} runs")
    return {method: ", ".join(parts) for method, parts in by_arm.items()}


def read_mapping(path: Path) -> dict:
    """Read a JSON or YAML file; UserError if it is missing, unreadable, or not a mapping."""
    try:
        text = user_text(Path(path))
        loaded = json.loads(text) if Path(path).suffix == ".json" else yaml.safe_load(text)
    except (json.JSONDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{path}: neither valid JSON nor YAML ({error})") from None
    if not isinstance(loaded, dict):
        raise UserError(f"{path}: expected a mapping")
    return loaded


def provenance_rows(snapshots: Mapping[str, Sequence[Mapping]]) -> list[tuple[str, list]]:
    """Rows of the provenance table: each stage with the distinct values of its entries.

    An entry has several values if the stage ran on several machines or with several versions.
    `snapshots` maps stages to snapshots, whose entries are at the top level or under "provenance".
    """
    rows = []
    for stage, of_stage in snapshots.items():
        facts: dict[str, dict[str, None]] = {}  # fact -> ordered set of values
        for snapshot in of_stage:
            stated = snapshot.get("provenance", snapshot)
            for key in STATED:
                if stated.get(key) not in (None, {}, ""):
                    facts.setdefault(key, {})[_text(stated[key])] = None
        if facts:
            rows.append((stage, [(key, list(values)) for key, values in facts.items()]))
    return rows


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {item}" for key, item in sorted(value.items()) if item is not None)
    return str(value)
