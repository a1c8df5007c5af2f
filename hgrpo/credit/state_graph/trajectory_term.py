"""The advantage of whole rollouts, one value per turn."""

import numpy as np

from hgrpo.credit.state_graph.normalise import EPS, ZERO
from hgrpo.credit.state_graph.settings import Settings
from hgrpo.credit.state_graph.turns import Turns


def rollout_advantages(turns: Turns, settings: Settings) -> np.ndarray:
    """A_traj [N] of each turn's rollout; 0 for a single rollout and for equal scores.

    `once` has one score per rollout, `cross_steps` one per turn, which differ inside a rollout if
    an inadmissible action costs its own turn. Deviations are of samples (n - 1). GRPO is Shao et
    al. 2024; RLOO (`loo`) is Ahmadian et al. 2024, score less the mean of the others.
    """
    rule = settings.trajectory
    scores = settings.scale * turns.success
    if settings.invalid == "propagate":
        scores = scores - settings.penalty * np.bincount(
            turns.rollout, weights=turns.inadmissible, minlength=len(turns.lengths)
        )
    if rule.rows == "once":
        return _advantages(scores, rule.mode)[turns.rollout]
    rows = scores[turns.rollout]
    if settings.invalid == "row":
        rows = rows - settings.penalty * turns.inadmissible
    return _advantages(rows, rule.mode)


def _advantages(scores: np.ndarray, mode: str) -> np.ndarray:
    if len(scores) < 2:
        return np.zeros(len(scores))
    centred = scores - scores.mean()
    deviation = scores.std(ddof=1)
    if deviation < ZERO:
        return np.zeros(len(scores))
    if mode == "mean":
        return centred
    if mode == "loo":
        return centred * len(scores) / (len(scores) - 1)
    return centred / (deviation + EPS)
