"""Computes tables that compare every method's credit with the true advantages of a policy."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from hgrpo.evaluation.shared_rollouts import Computation, SharedRollouts
from hgrpo.evaluation.truth.measured import SHUFFLED, SHUFFLED_LABEL, TRUTH, TRUTH_LABEL, Played
from hgrpo.evaluation.truth.scoring import (
    error_rows,
    gradient_rows,
    score,
    shuffled_row,
    true_gradient_rows,
)
from hgrpo.evaluation.truth.update import update_advantages
from hgrpo.evaluation.truth.update_settings import ArmUpdate


def truth_tables(
    played: Played, updates: Mapping[str, ArmUpdate], labels: Mapping[str, str]
) -> dict[str, pd.DataFrame]:
    """Compare credit with the true advantages of the same rollouts (`played.truth`, not None).

    Returns:
        - truth: one row per method, then one for the shuffled truth; see `scoring.score`.
          `seconds`, `dollars` and `extra_trajectories` are costs per trajectory (`price`).
        - truth_gradients: rows of each method and of the exact truth; see `scoring.gradient_rows`.
        - truth_errors: rows of each method; see `scoring.error_rows`.

    Args:
        updates: maps each method to the settings that convert its credit to advantages.
        labels: maps methods to labels, in the order of the rows. Only methods with credit have a
            row.
    """
    rollouts, truth = played.rollouts, played.truth
    where = {"round": rollouts.stored[0].round}
    computed = {
        name: each for each in played.plan for name in each.methods if each.values is not None
    }
    methods, gradients, errors = [], [], []
    for name in filter(computed.__contains__, labels):
        head = where | {"method": name, "label": labels[name]}
        credit = computed[name].values
        advantage = update_advantages(credit, rollouts.named, updates[name])
        row = score(credit, advantage, truth)
        methods.append(head | row | price(computed[name], rollouts))
        gradients += [head | row for row in gradient_rows(advantage, truth)]
        errors += [head | row for row in error_rows(advantage, truth)]
    head = where | {"method": SHUFFLED, "label": SHUFFLED_LABEL}
    methods.append(head | shuffled_row(truth))
    head = where | {"method": TRUTH, "label": TRUTH_LABEL}
    gradients += [head | row for row in true_gradient_rows(truth)]
    tables = {"truth": methods, "truth_gradients": gradients, "truth_errors": errors}
    return {name: pd.DataFrame(rows) for name, rows in tables.items()}


def price(computed: Computation, rollouts: SharedRollouts) -> dict[str, float]:
    """Cost of credit per trajectory: seconds, dollars, and extra trajectories played.

    The costs of fitting a model between rounds, and of a judge's cached answers, are not included.
    """
    starts = np.cumsum(rollouts.lengths) - rollouts.lengths
    credited = max(1, int(np.isfinite(computed.values[starts]).sum()))
    report = computed.report
    dollars = report.get("judge_dollars", 0.0) + report.get("judge_dollars_unconfirmed", 0.0)
    return {
        "seconds": computed.seconds / credited,
        "dollars": dollars / credited,
        "extra_trajectories": report.get("cf_branches", 0) / credited,
    }
