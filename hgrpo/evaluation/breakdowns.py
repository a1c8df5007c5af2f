"""Builds tables of each arm's results: endpoint scores, and results by run, round and task type."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from hgrpo.evaluation import statistics
from hgrpo.evaluation.endpoint import endpoint_name
from hgrpo.evaluation.outcomes import (
    GREEDY,
    TEST,
    VALIDATION,
    Outcomes,
    mean_score,
    outcomes,
    score_table,
    select,
)
from hgrpo.evaluation.played_endpoints import Arm, Played, Protocol
from hgrpo.evaluation.settings import Score, StatisticsConfig


def methods(
    episodes: pd.DataFrame,
    arms: Sequence[Arm],
    declared: Played,
    at_end: Played,
    protocol: Protocol,
    last: Mapping[str, int],
) -> pd.DataFrame:
    """Main table: endpoint score and last-round results, one row per arm and temperature."""
    rows = []
    for arm in arms:
        method, temperature = arm
        chosen = select(episodes, method, last[method], temperature)
        score = mean_score(declared[arm], protocol.settings.score, protocol.level)
        rows.append(
            {"method": method, "temperature": temperature, "round": last[method]}
            | score.columns("endpoint", "endpoint_")
            | last_round(chosen, at_end[arm], protocol.level)
        )
    return pd.DataFrame(rows)


def seeds(arms: Sequence[Arm], declared: Played, at_end: Played, score: Score) -> pd.DataFrame:
    """Endpoint score, last-round success and last-round return, one row per run."""
    parts = [
        pd.DataFrame(
            {
                "method": arm[0],
                "temperature": arm[1],
                "seed": declared[arm].seeds,
                "endpoint": score_table(declared[arm], score).mean(axis=1),
                "success": at_end[arm].success.mean(axis=1),
                "mean_return": at_end[arm].returns.mean(axis=1),
            }
        )
        for arm in arms
    ]
    return pd.concat(parts, ignore_index=True)


def endpoints(
    played: Mapping[str, Played],
    arms: Sequence[Arm],
    others: Sequence[tuple[str, Score]],
    settings: StatisticsConfig,
) -> pd.DataFrame:
    """Mean score of each arm at each endpoint; `declared` is True for the declared endpoint."""
    stated = (endpoint_name(settings.endpoint), settings.score)
    return pd.DataFrame(
        {"endpoint": name, "score": score, "declared": (name, score) == stated}
        | {"method": arm[0], "temperature": arm[1]}
        | mean_score(played[name][arm], score, settings.confidence).columns("mean")
        for name, score in (stated, *others)
        for arm in arms
    )


def last_round(chosen: pd.DataFrame, played: Outcomes, level: float) -> dict:
    """Columns of the main table that describe one arm in one round at one temperature.

    `chosen` contains the arm's episodes on all panels. `played` contains the arm's outcomes on the
    test panel. If the arm was evaluated only once, these outcomes are repeated for every seed.
    """
    test = chosen[chosen["panel"] == TEST]
    rate = statistics.rate_interval(played.success, level)
    paid = statistics.mean_interval(played.returns, level)
    validation = chosen[chosen["panel"] == VALIDATION]["success"]
    turns = test["n_turns"].sum()
    return {
        "n_seeds": test["seed"].nunique(),
        "n_tasks": rate.n_tasks,
        **rate.columns("success"),
        "validation_success": validation.mean() if len(validation) else np.nan,
        **paid.columns("mean_return", "return_"),
        "paid_share": paid_share(test),
        "mean_progress": test["final_progress"].mean(),
        "mean_turns": test["n_turns"].mean(),
        "mean_action_tokens": test["n_action_tokens"].mean(),
        "inadmissible_share": test["n_inadmissible"].sum() / max(1, turns),
        "inadmissible": int(test["n_inadmissible"].sum()),
        "overlong": int(test["n_overlong"].sum()),
        "empty": int(test["n_empty"].sum()),
        "truncated_share": test["truncated"].mean(),
    }


def paid_share(episodes: pd.DataFrame) -> float:
    """Share of episodes with a return above 0, which is H-GRPO's definition of success."""
    return float((episodes["env_return"] > 0).mean())


def temperature_table(
    episodes: pd.DataFrame, method: str, round_index: int, level: float
) -> pd.DataFrame:
    """Success, mean return and other results of one arm in a round, by panel and temperature."""
    mine = episodes[(episodes["method"] == method) & (episodes["round"] == round_index)]
    rows = []
    for (panel, temperature), group in mine.groupby(["panel", "temperature"], sort=True):
        played = outcomes(group)
        rate = statistics.rate_interval(played.success, level)
        paid = statistics.mean_interval(played.returns, level)
        rows.append(
            {
                "panel": panel,
                "temperature": temperature,
                **rate.columns("success"),
                "n_seeds": rate.n_seeds,
                "n_tasks": rate.n_tasks,
                **paid.columns("mean_return", "return_"),
                "inadmissible_share": _inadmissible_share(group),
            }
        )
    return pd.DataFrame(rows)


def rounds_by_seed(episodes: pd.DataFrame) -> pd.DataFrame:
    """Greedy success, return and number of turns of each run, by round and panel."""
    greedy = episodes[episodes["temperature"] == GREEDY]
    keys = ["method", "seed", "round", "panel"]
    return greedy.groupby(keys, as_index=False).agg(
        success=("success", "mean"),
        mean_return=("env_return", "mean"),
        mean_turns=("n_turns", "mean"),
    )


def rounds(episodes: pd.DataFrame, order: Sequence[str], level: float) -> pd.DataFrame:
    """Greedy success and return of each arm over its seeds, by round and panel, with intervals."""
    greedy = episodes[episodes["temperature"] == GREEDY]
    rows = []
    for method in order:
        mine = greedy[greedy["method"] == method]
        for (panel, round_index), group in mine.groupby(["panel", "round"]):
            played = outcomes(group)
            rate = statistics.rate_interval(played.success, level)
            paid = statistics.mean_interval(played.returns, level)
            rows.append(
                {
                    "method": method,
                    "round": round_index,
                    "panel": panel,
                    **rate.columns("success"),
                    **paid.columns("mean_return", "return_"),
                    "mean_turns": group["n_turns"].mean(),
                    "inadmissible_share": _inadmissible_share(group),
                }
            )
    return pd.DataFrame(rows)


def best_rounds(rounds: pd.DataFrame, order: Sequence[str], last: dict[str, int]) -> pd.DataFrame:
    """Each arm's best and last round on the test panel.

    No verdict uses the best round, because it is selected on the test results.
    """
    rows = []
    for method in order:
        mine = rounds[(rounds["method"] == method) & (rounds["panel"] == TEST)]
        best = mine.loc[mine["success"].idxmax()]
        final = mine[mine["round"] == last[method]].iloc[0]
        rows.append(
            {
                "method": method,
                "best_round": int(best["round"]),
                "best_success": best["success"],
                "last_round": last[method],
                "last_success": final["success"],
                "mean_success": mine["success"].mean(),
            }
        )
    return pd.DataFrame(rows)


def task_types(
    episodes: pd.DataFrame, order: Sequence[str], last: dict[str, int], level: float
) -> pd.DataFrame:
    """Greedy test success at the last round, by task type."""
    rows = []
    for method in order:
        chosen = select(episodes, method, last[method], GREEDY)
        chosen = chosen[chosen["panel"] == TEST]
        for task_type, group in chosen.groupby("task_type", sort=True):
            success = outcomes(group).success
            tasks = success.shape[1]
            # The variance between tasks is undefined for a single task, so use Wilson's interval.
            if tasks < 2:
                lower, upper = statistics.wilson_interval(success.mean(), 1, 1 - level)
            else:
                rate = statistics.rate_interval(success, level)
                lower, upper = rate.lower, rate.upper
            if len(success) == 1:  # one seed has no interval, as in `Estimate.columns`
                lower = upper = np.nan
            rows.append(
                {
                    "method": method,
                    "task_type": task_type,
                    "n_tasks": tasks,
                    "success": success.mean(),
                    "lower": lower,
                    "upper": upper,
                    "mean_return": group["env_return"].mean(),
                }
            )
    return pd.DataFrame(rows)


def _inadmissible_share(episodes: pd.DataFrame) -> float:
    return episodes["n_inadmissible"].sum() / episodes["n_turns"].sum()
