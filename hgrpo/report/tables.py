"""Tables of the report, written as CSV files."""

from collections.abc import Mapping

import pandas as pd

from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.differences import cells
from hgrpo.report.arms import Arms
from hgrpo.report.inputs import Inputs
from hgrpo.report.names import TABLES

COUNTS = ["n_trajectories", "n_groups", "dead_groups"]
COUNTS += ["inadmissible", "overlong", "empty", "truncated", "context_overflow"]
# Maps columns of the log to titles. The columns contain the costs of continuations and judges.
EXTRAS = {
    "cf_branches": "continuations played for credit",
    "cf_replies": "new replies in them",
    "judge_calls": "judge calls",
    "judge_cache_hits": "judge cache hits",
    "judge_fallbacks": "judge fallbacks",
    "judge_input_tokens": "judge prompt tokens",
    "judge_output_tokens": "judge completion tokens",
    "judge_dollars": "judge dollars",
    "judge_dollars_unconfirmed": "judge dollars, unconfirmed",
}
SCRIPTED = ["label", "panel", "trajectories", "success", "score"]
IMITATED = "the expert that was imitated"
_PAIR = ("method", "baseline", "baseline_temperature")
_ENDS = ("difference", "lower", "upper")
_COMPARED = (
    *(*_PAIR, "n_seeds", "n_tasks", "baseline_runs", "endpoint", "baseline_endpoint", *_ENDS),
    *("standard_error", "degrees_of_freedom", "p_value"),
    *("probability_of_improvement", "minimum_detectable_effect", "p_holm", "verdict"),
    "repeats_alike",
)
# Maps a table to the attribute of `Comparison` that contains it, if their names differ.
_ATTRIBUTES = {
    "against_sft": "against_untrained",
    "sft_temperatures": "temperatures",
    "best_rounds_for_the_record": "best_rounds",
    "thresholds_by_seed": "first_rounds",
}
# These tables may be empty. For example, a study of a single arm has no comparisons. An empty table
# is written with these columns, so that its file has the same columns in every study.
HEADERS = {
    "against_reference": _COMPARED,
    "against_sft": _COMPARED,
    "pairs": _COMPARED,
    "other_endpoints": ("endpoint", "score", *_PAIR, *_ENDS),
    "sft_temperatures": (
        *("panel", "temperature", "success", "lower", "upper", "n_seeds", "n_tasks"),
        *("mean_return", "return_lower", "return_upper", "inadmissible_share"),
    ),
    "thresholds": (
        *("threshold", "method", "n_seeds", "reached", "median", "restricted_mean"),
        *("lower", "upper", "difference", "difference_lower", "difference_upper", "horizon"),
    ),
    "thresholds_by_seed": (
        *("threshold", "method", "seed", "reached", "round", "trajectories", "replies", "end"),
    ),
    "seeds_needed": (
        *("difference", "seeds", "fewest", "most", "comparisons", "n_seeds", "level", "power"),
    ),
    "cost": (
        *("method", "n_seeds", "trajectories", "replies", "tokens", "seconds"),
        *("collect_s", "credit_s", "update_s", "fit_s", "cf_branches", "cf_replies"),
        *("judge_calls", "judge_cache_hits", "judge_fallbacks", "judge_input_tokens"),
        *("judge_output_tokens", "judge_dollars", "judge_dollars_unconfirmed"),
    ),
}


def counts(comparison: Comparison, logs: pd.DataFrame, arms: Arms) -> pd.DataFrame:
    """Counts per arm of events that are not errors but may bias results.

    Columns that start with `train_` are sums over seeds and rounds, or NaN if nothing was logged.
    Columns that start with `test_` are from greedy play of the test panel after the last round.
    """
    rows = []
    greedy = comparison.methods[comparison.methods["temperature"] == 0].set_index("method")
    for name in [name for name in arms.names if name in greedy.index]:
        mine, played = logs[logs["method"] == name], greedy.loc[name]
        episodes = int(played["n_seeds"] * played["n_tasks"])
        rows.append(
            {
                "method": name,
                **mine[COUNTS].astype(float).sum(min_count=1).add_prefix("train_"),
                "test_episodes": episodes,
                **played[["inadmissible", "overlong", "empty"]].astype(int).add_prefix("test_"),
                "test_truncated": round(played["truncated_share"] * episodes),
            }
        )
    return pd.DataFrame(rows)


def cost(logs: pd.DataFrame, arms: Arms) -> pd.DataFrame:
    """Mean training cost per seed, with one row per trained arm.

    Trajectories, replies (calls of the policy) and tokens include continuations and the additional
    groups of dynamic sampling. Seconds include the fits between rounds but exclude evaluation.
    Values that were not logged are NaN.
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
    """Titles of those columns of `EXTRAS` that at least one arm in a cost table has logged."""
    return {
        name: title for name, title in EXTRAS.items() if len(table) and table[name].notna().any()
    }


def scripted_players(expert: Mapping) -> pd.DataFrame:
    """One row per scripted player in the expert stage's summary, with the columns `SCRIPTED`.

    A success must be within the policies' turn cap. The score is the mean return without this cap.
    `expert` is summary.json of the expert stage.
    """
    ceiling = expert.get("informed_is", ""), expert.get("informed_panel", "")
    rows = [
        [label, panel, row["trajectories"], row["at_turn_cap"], row["score"]]
        for key, label, panel in (("success", IMITATED, "train"), ("informed", *ceiling))
        if (row := (expert.get(key) or {}).get("all"))
    ]
    return pd.DataFrame(rows, columns=SCRIPTED)


def all_tables(inputs: Inputs, scripted: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Build all tables by name, with the names of `names.table_names`."""
    comparison, logs, arms = inputs.comparison, inputs.logs, inputs.arms
    made = {
        "scripted": scripted,
        "counts": counts(comparison, logs, arms),
        "stops": inputs.stops,
        "cost": cost(logs, arms),
    } | {name: getattr(comparison, attribute) for name, attribute in _ATTRIBUTES.items()}
    tables = {name: made[name] if name in made else getattr(comparison, name) for name in TABLES}
    if inputs.collapse is not None:
        tables["collapse"] = inputs.collapse
    if len(comparison.gates):
        tables["gates"] = comparison.gates
    if comparison.protocol.settings.pairs:
        tables["pairs"] = comparison.pairs
    if inputs.design:
        tables["factorial"] = cells(comparison.methods, inputs.design)
    for name in [name for name, table in tables.items() if table.columns.empty]:
        tables[name] = pd.DataFrame(columns=list(HEADERS[name]))
    return {name: _labelled(table, arms) for name, table in tables.items()}


def _labelled(table: pd.DataFrame, arms: Arms) -> pd.DataFrame:
    if "method" not in table.columns or "label" in table.columns:
        return table
    table = table.copy()
    table.insert(table.columns.get_loc("method") + 1, "label", table["method"].map(arms.label))
    return table
