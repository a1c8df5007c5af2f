"""Main effects and interactions of a factorial study, with intervals."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import pandas as pd

from hgrpo.evaluation import statistics
from hgrpo.evaluation.designs import Factorial
from hgrpo.evaluation.differences import contrast
from hgrpo.evaluation.outcomes import GREEDY
from hgrpo.evaluation.settings import Score


def effects(
    scores: Mapping[str, np.ndarray], design: Factorial, score: Score, level: float
) -> pd.DataFrame:
    """One row per contrast of the design, on the study's endpoint.

    A contrast splits the cells into two halves. It compares the halves' mean scores; the spread
    between runs is that of all cells. A main effect is the score at
    the other level minus the score at the reference arm's level. An interaction is half of the
    change in the credit assigner's effect when the other factor changes. With this usual scaling
    (Box, Hunter and Hunter 2005, Statistics for Experimenters), all rows have the same standard
    error in expectation. Holm's correction covers all rows.

    Args:
        scores: arm -> its scores [seeds, tasks] at the endpoint; `compare` has checked that all
            arms share seeds and tasks.
    """
    rows = []
    for factors in design.contrasts:
        signs = design.signs(*factors)
        weights = {arm: 2 * sign / len(signs) for arm, sign in signs.items()}
        estimate = contrast({arm: scores[arm] for arm in signs}, weights, score, level)
        rows.append(
            {
                "effect": " x ".join(factors),
                "kind": "main" if len(factors) == 1 else "interaction",
                "n_seeds": estimate.n_seeds,
                "n_tasks": estimate.n_tasks,
                **estimate.columns("difference"),
                "standard_error": estimate.standard_error,
                "p_value": estimate.p_value,
            }
        )
    return statistics.with_verdicts(pd.DataFrame(rows), level)


def cells(methods: pd.DataFrame, design: Factorial) -> pd.DataFrame:
    """One row per cell, ordered by factor levels, with its endpoint from `Comparison.methods`."""
    greedy = methods[methods["temperature"] == GREEDY].set_index("method")
    columns = ["n_seeds", "n_tasks", "endpoint", "endpoint_lower", "endpoint_upper"]
    arm_of = {tuple(cell.values()): arm for arm, cell in design.cells.items()}
    arms = [arm_of[levels] for levels in product(*design.factors.values())]
    return pd.DataFrame(
        [{"method": arm, **design.cells[arm], **greedy.loc[arm, columns].to_dict()} for arm in arms]
    )
