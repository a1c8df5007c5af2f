"""Tabulates arms' results by the correlation of their credit with the oracle's credit."""

from collections.abc import Iterator, Mapping

import pandas as pd

from hgrpo.evaluation import thresholds
from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.outcomes import GREEDY

# Values of the column `measure`.
ENDPOINT, TRAJECTORIES = "endpoint", "trajectories"
_TIMES = ("value", "lower", "upper")


def responses(comparison: Comparison, known: Mapping[str, float]) -> pd.DataFrame:
    """Results of the reference and of the arms of `designs.doses`, by measure, arm and run.

    Returns:
        Columns measure, threshold, method, correlation, seed, value, lower, upper, reached,
        n_seeds, steps, steps_lower and steps_upper. `measure` is `ENDPOINT`, or `TRAJECTORIES` for
        the number of trajectories until a threshold was reached. Rows without a seed contain the
        arm's mean and its interval. With `TRAJECTORIES`, the mean is a restricted mean
        (`thresholds.summary`), and `reached` is the number of runs that reached the threshold. A
        run that did not reach the threshold by the common horizon has `reached` 0 and the horizon
        as `value`. `correlation` is NaN for the reference. `steps` is NaN for the endpoint, and for
        arms that are not in the protocol's `step_trajectories`.
    """
    arms = {**known, comparison.protocol.reference: float("nan")}
    rows = [*_endpoint(comparison), *_times(comparison)]
    table = pd.DataFrame(row for row in rows if row["method"] in arms)
    table.insert(3, "correlation", table["method"].map(arms))
    per_step = table["method"].map(dict(comparison.protocol.step_trajectories))
    for name in _TIMES:
        steps = (table[name] / per_step).where(table["measure"] == TRAJECTORIES)
        table["steps" if name == "value" else f"steps_{name}"] = steps
    place = table["method"].map({name: number for number, name in enumerate(arms)})
    order = table.assign(place=place, single=table["seed"].notna())
    keys = ["measure", "threshold", "place", "single", "seed"]
    return table.loc[order.sort_values(keys, kind="stable").index].reset_index(drop=True)


def _endpoint(comparison: Comparison) -> Iterator[dict]:
    for row in comparison.methods.to_dict("records"):
        if row["temperature"] == GREEDY:
            ends = {name: row[f"endpoint_{name}"] for name in ("lower", "upper")}
            yield _row(ENDPOINT, row["method"], row["endpoint"], **ends, n_seeds=row["n_seeds"])
    for row in comparison.seeds.to_dict("records"):
        if row["temperature"] == GREEDY:
            yield _row(ENDPOINT, row["method"], row["endpoint"], seed=row["seed"])


def _times(comparison: Comparison) -> Iterator[dict]:
    for row in comparison.thresholds.to_dict("records"):
        columns = {
            name: row[name] for name in ("threshold", "lower", "upper", "reached", "n_seeds")
        }
        yield _row(TRAJECTORIES, row["method"], row["restricted_mean"], **columns)
    first = comparison.first_rounds
    if first.empty:
        return
    horizon = thresholds.common_horizon(first)
    for row in first.to_dict("records"):
        yield _row(
            TRAJECTORIES,
            row["method"],
            min(row["trajectories"], horizon),
            threshold=row["threshold"],
            seed=row["seed"],
            reached=int(row["reached"] and row["trajectories"] <= horizon),
        )


def _row(measure: str, method: str, value: float, **others: float) -> dict:
    nothing = dict.fromkeys(("seed", "lower", "upper", "reached", "n_seeds"), float("nan"))
    head = {"measure": measure, "threshold": float("nan"), "method": method}
    return head | {"seed": nothing.pop("seed"), "value": value} | nothing | others
