"""Kondo's screen."""

from collections.abc import Sequence

from torch import Tensor

from hgrpo.learning.objectives.dg import delight
from hgrpo.learning.objectives.kondo import keep_probabilities, kondo_keep
from hgrpo.sandbox import draws
from hgrpo.sandbox.rl.rule_settings import Screen
from hgrpo.sandbox.rollout import Rollout


def screen(
    rollout: Rollout, own: Screen, seeds: Sequence[int], step: int
) -> tuple[Tensor, dict[str, Tensor]]:
    """Kondo: only rollouts with much delight, which is advantage times surprisal, take part.

    Returns 1 for those, [S, N, K], and metrics [S] for the log. A rollout's score is the largest
    delight of its tokens under the policy that sampled them, with the collision probability as
    baseline.
    """
    advantages = rollout.rewards[..., None, None] - rollout.collision
    best = delight(rollout.behaviour, advantages).flatten(3).amax(-1).flatten(1)
    chances = keep_probabilities(best, own.keep, own.eta)
    uniform = draws.uniform(seeds, "screen", (step,), best.shape[1:])
    keep = kondo_keep(best, uniform, own.keep, own.eta)
    metrics = {"kept_frac": keep.mean(1), "gate_prob_mean": chances.mean(1)}
    return keep.view_as(rollout.rewards), metrics
