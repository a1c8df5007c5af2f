"""Rows of the page's tables of other endpoints and of thresholds, which carry no verdicts."""

from hgrpo.evaluation.comparison import Comparison
from hgrpo.report.arms import Arms
from hgrpo.report.endpoint_words import amount, endpoint_title, threshold_text
from hgrpo.report.words import ends, opponent, temperature_name, with_interval


def beside(comparison: Comparison, arms: Arms) -> dict:
    """The endpoints that the study did not declare: column titles, and a row per arm.

    Each endpoint has a column with the arm's level, and one with its difference from each baseline.
    """
    levels = comparison.endpoints[~comparison.endpoints["declared"]]
    if levels.empty:
        return {}
    others = list(dict.fromkeys(zip(levels["endpoint"], levels["score"], strict=True)))
    levels = levels.set_index(["endpoint", "score", "method", "temperature"]).sort_index()
    found = comparison.other_endpoints
    baselines, differences = [], {}
    if len(found):
        keys = ["endpoint", "score", "baseline", "baseline_temperature", "method"]
        differences = found.set_index(keys)[["difference", "lower", "upper"]].to_dict("index")
        baselines = list(
            dict.fromkeys(zip(found["baseline"], found["baseline_temperature"], strict=True))
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
    """Per threshold: its text, and a row per arm with the trajectories that it needed."""
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
