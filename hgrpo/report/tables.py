"""The tables of the report as CSV: what was compared, what was counted, what it cost."""

from pathlib import Path

import pandas as pd

from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.effects import cells
from hgrpo.report.arms import Arms
from hgrpo.report.csv_file import write_csv
from hgrpo.report.inputs import Inputs

COUNTS = ("inadmissible", "overlong", "empty", "truncated", "context_overflow")
# What some assigners spend beyond the rollouts: play of their own, and calls to a judge.
EXTRAS = {
    "cf_branches": "counterfactual branches",
    "cf_replies": "replies in them",
    "judge_calls": "judge calls",
    "judge_cache_hits": "judge cache hits",
    "judge_fallbacks": "judge fallbacks",
    "judge_input_tokens": "judge prompt tokens",
    "judge_output_tokens": "judge completion tokens",
    "judge_dollars": "judge dollars",
    "judge_dollars_unconfirmed": "judge dollars, unconfirmed",
}


def counts(comparison: Comparison, logs: pd.DataFrame, arms: Arms) -> pd.DataFrame:
    """Everything that may legitimately happen, per arm, summed over seeds and rounds.

    Training columns are missing (NaN) where a log does not have them; evaluation columns are
    those of the last round on the test panel, greedy.
    """
    rows = []
    greedy = comparison.methods[comparison.methods["temperature"] == 0].set_index("method")
    for name in arms.names:
        if name not in greedy.index:
            continue
        mine, played = logs[logs["method"] == name], greedy.loc[name]
        trained = {
            f"train_{column}": _total(mine, column)
            for column in ("n_trajectories", "n_groups", "dead_groups", *COUNTS)
        }
        episodes = int(played["n_seeds"] * played["n_tasks"])
        rows.append(
            {
                "method": name,
                **trained,
                "test_episodes": episodes,
                "test_inadmissible": int(played["inadmissible"]),
                "test_overlong": int(played["overlong"]),
                "test_empty": int(played["empty"]),
                "test_truncated": round(played["truncated_share"] * episodes),
            }
        )
    return pd.DataFrame(rows)


def never_updated(logs: pd.DataFrame, arms: Arms) -> list[str]:
    """Trained arms of which no run ever took an optimiser step, as every group was dead."""
    names = []
    for name in arms.trained:
        mine = logs[logs["method"] == name]
        dead = (mine["dead_groups"] == mine["n_groups"]) & mine["grad_norm"].isna()
        if len(mine) and dead.all():
            names.append(name)
    return names


def cost(logs: pd.DataFrame, arms: Arms) -> pd.DataFrame:
    """What training one seed of each trained arm took, mean over seeds.

    Trajectories, replies (calls of the policy) and tokens are those of the rollouts and of the
    counterfactual branches; seconds include the fits between rounds, and leave evaluation out.
    What an arm did not log is missing (NaN).
    """
    columns = ["trajectories", "replies", "tokens", "seconds"]
    parts = ["collect_s", "credit_s", "update_s", "fit_s", *EXTRAS]
    rows = []
    for name in arms.trained:
        mine = logs[logs["method"] == name]
        if mine.empty:
            continue
        runs = mine.groupby("seed")
        rows.append(
            {"method": name, "n_seeds": runs.ngroups}
            | runs[columns].last().mean().to_dict()
            | runs[parts].sum(min_count=1).mean().to_dict()
        )
    return pd.DataFrame(rows)


def logged_extras(table: pd.DataFrame) -> dict[str, str]:
    """Column -> heading of the `EXTRAS` that any arm of a cost table has."""
    return {
        name: title for name, title in EXTRAS.items() if len(table) and table[name].notna().any()
    }


def all_tables(inputs: Inputs, scripted: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Name -> table, for the folder of CSV files; the names are those of `names.table_names`.

    Args:
        scripted: rows of `scripted_players`.
    """
    comparison, logs, arms = inputs.comparison, inputs.logs, inputs.arms
    tables = {
        "methods": comparison.methods,
        "scripted": scripted,
        "seeds": comparison.seeds,
        "against_reference": comparison.against_reference,
        "against_sft": comparison.against_untrained,
        "mcnemar": comparison.mcnemar,
        "sft_temperatures": comparison.temperatures,
        "rounds": comparison.rounds,
        "rounds_by_seed": comparison.rounds_by_seed,
        "best_rounds_for_the_record": comparison.best_rounds,
        "task_types": comparison.task_types,
        "counts": counts(comparison, logs, arms),
        "cost": cost(logs, arms),
    }
    if inputs.design:
        tables["factorial"] = cells(comparison.methods, inputs.design)
    return {name: _labelled(table, arms) for name, table in tables.items()}


def write_tables(tables: dict[str, pd.DataFrame], folder: Path) -> None:
    """Write each table as <name>.csv; an empty one as a file with nothing but a line end."""
    for name, table in tables.items():
        write_csv(table, folder / f"{name}.csv")


def _labelled(table: pd.DataFrame, arms: Arms) -> pd.DataFrame:
    """A table with what people read of each arm beside its name: a label may hold a caution."""
    if "method" not in table.columns or "label" in table.columns:
        return table
    table = table.copy()
    table.insert(table.columns.get_loc("method") + 1, "label", table["method"].map(arms.label))
    return table


def _total(table: pd.DataFrame, column: str) -> float:
    return float(table[column].sum(min_count=1)) if len(table) else float("nan")
