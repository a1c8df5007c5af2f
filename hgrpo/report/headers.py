"""The columns of tables that a study may leave empty, such as comparisons of a single arm.

A table without rows comes without columns. Its file has its header all the same, so that who reads
the file finds the columns that the table has in other studies.
"""

import pandas as pd

_PAIR = ("method", "baseline", "baseline_temperature")
_ENDS = ("difference", "lower", "upper")
_COMPARED = (
    *(*_PAIR, "n_seeds", "n_tasks", "baseline_runs", "endpoint", "baseline_endpoint", *_ENDS),
    *("standard_error", "degrees_of_freedom", "bootstrap_lower", "bootstrap_upper", "p_value"),
    *("probability_of_improvement", "minimum_detectable_effect", "p_holm", "verdict"),
    "repeats_alike",
)
HEADERS = {
    "against_reference": _COMPARED,
    "against_sft": _COMPARED,
    "pairs": _COMPARED,
    "other_endpoints": ("endpoint", "score", *_PAIR, *_ENDS),
    "mcnemar": (*_PAIR, "seed", "only_method", "only_baseline", "p_value"),
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


def with_header(name: str, table: pd.DataFrame) -> pd.DataFrame:
    """The table; if it has neither rows nor columns, an empty one with the columns of its name."""
    if len(table.columns):
        return table
    return pd.DataFrame(columns=list(HEADERS[name]))
