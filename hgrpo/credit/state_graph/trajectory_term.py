"""The advantage of whole rollouts, which every turn of a rollout gets."""

import numpy as np

from hgrpo.credit.state_graph.normalise import EPS, ZERO
from hgrpo.credit.state_graph.settings import Settings
from hgrpo.credit.state_graph.turns import Turns


def rollout_advantages(turns: Turns, settings: Settings) -> np.ndarray:
    """Advantage A_traj of each turn's rollout, [N]; 0 for a single score and for equal scores.

    With rows `once` there is one score per rollout, with `cross_steps` one per turn. With `alive`
    each turn number has its own statistics, over the rollouts that reached it. The scores of
    a rollout's turns differ only with `invalid: row`, where an inadmissible action lowers the score
    of its own turn. Mode `mean` subtracts the mean score. Mode `mean_std` is GRPO ("DeepSeekMath:
    Pushing the Limits of Mathematical Reasoning in Open Language Models",
    https://arxiv.org/abs/2402.03300) with the sample deviation (n - 1). Mode `loo` is RLOO ("Back
    to Basics: Revisiting REINFORCE Style Optimization for Learning from Human Feedback in LLMs",
    https://arxiv.org/abs/2402.14740): the score minus the mean of the other scores; without
    others, what `lone` says.
    """
    rule = settings.trajectory
    scores = settings.scale * turns.success
    if settings.invalid == "propagate":
        scores = scores - settings.penalty * np.bincount(
            turns.rollout, weights=turns.inadmissible, minlength=len(turns.lengths)
        )
    if rule.rows == "once":
        return _advantages(scores, rule.mode, _lone(scores, rule.lone))[turns.rollout]
    rows = scores[turns.rollout]
    if rule.rows == "alive":
        result, lone = np.zeros(len(turns)), _lone(scores, rule.lone)[turns.rollout]
        for time in range(int(turns.time.max()) + 1):
            here = turns.time == time
            result[here] = _advantages(rows[here], rule.mode, lone[here])
        return result
    if settings.invalid == "row":
        rows = rows - settings.penalty * turns.inadmissible
    return _advantages(rows, rule.mode, np.zeros(len(rows)))


def _lone(scores: np.ndarray, rule: str) -> np.ndarray:
    """The advantage [K] that each rollout has at turns that no other rollout reached."""
    others = (scores.sum() - scores) / max(1, len(scores) - 1)
    return scores - {"zero": scores, "return": 0.0, "group": others}[rule]


def _advantages(scores: np.ndarray, mode: str, lone: np.ndarray) -> np.ndarray:
    """Advantages [n] of rollouts that are compared; `lone` [n] are those of a single one."""
    if len(scores) < 2:
        return lone
    if (deviation := scores.std(ddof=1)) < ZERO:
        return np.zeros(len(scores))
    centred = scores - scores.mean()
    if mode == "mean":
        return centred
    if mode == "loo":
        return centred * len(scores) / (len(scores) - 1)
    return centred / (deviation + EPS)
