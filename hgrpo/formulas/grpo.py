"""GRPO and its relatives: rollouts of a group, or candidates of a prefix, are compared and clipped.

Sources stand at `clip.ppo_clip`, `group.z_scores`, `group.centred` and `kl.kl_k3`.
"""

import math
from collections.abc import Callable, Mapping
from typing import Literal

from pydantic import Field

from hgrpo.formulas.batch import Seen, Term, seed_mean
from hgrpo.formulas.clip import ppo_clip, surrogate
from hgrpo.formulas.group import centred, z_scores
from hgrpo.formulas.importance import ratios
from hgrpo.formulas.kl import kl_k3
from hgrpo.formulas.rule import CANDIDATES, GROUPS, Rule
from hgrpo.formulas.tensors import Tensor

# Advantages of the rewards [S, N, K] of groups.
_NORMS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "std": lambda rewards: z_scores(rewards, -1),
    "mean": lambda rewards: centred(rewards, -1),
    "none": lambda rewards: rewards,
}


class Clip(Rule):
    """A symmetric clip, and a penalty to the old policy."""

    # At 0, rounding would decide which tokens train. The same holds for the clips below.
    clip: float = Field(0.2, gt=0, description="the ratio is clipped to 1 plus and minus this")
    beta: float = Field(0.04, ge=0, description="weight of the k3 penalty to the old policy")


class GRPO(Clip):
    """Z-scores, a symmetric clip, and a penalty to the policy that sampled.

    Kept: z-scores, the clip and the k3 penalty. Changed: the penalty pulls to the policy that
    sampled, and not to a fixed reference. Its parts can be changed one by one.
    """

    grouped = True
    needs = GROUPS

    clip: float | None = Field(
        0.2, gt=0, description="the ratio is clipped to 1 plus and minus this; null: it is not"
    )
    norm: Literal["std", "mean", "none"] = Field(
        "std",
        description="std: z-scores; mean: centred rewards; none: rewards as they are",
    )
    reduction: Literal["token", "rollout"] = Field(
        "token", description="token: mean over tokens; rollout: tokens of a rollout add up"
    )

    def term(self, seen: Seen) -> Term:
        advantages = _NORMS[self.norm](seen.rollout.rewards)
        # A ratio lies above 0, so the band from 0 to infinity clips nothing.
        band = (1.0, math.inf) if self.clip is None else (self.clip, self.clip)
        terms, metrics = _clipped(seen, advantages, *band, self.beta)
        reduce = _over_rollouts if self.reduction == "rollout" else Seen.mean
        return Term(reduce(seen, terms), metrics)


class DrGRPO(Clip):
    """Centred rewards, and rollouts add up their tokens.

    Kept: centred rewards, and sums over tokens. All outputs have one length, so a bias by length
    cannot show. Changed: GRPO's penalty stays, as in the original.
    """

    grouped = True
    needs = GROUPS

    def term(self, seen: Seen) -> Term:
        advantages = centred(seen.rollout.rewards, -1)
        terms, metrics = _clipped(seen, advantages, self.clip, self.clip, self.beta)
        return Term(_over_rollouts(seen, terms), metrics)


class DAPOLite(Rule):
    """Z-scores, the upper clip wider, no penalty.

    Kept: the wider upper clip and the mean over tokens, without a penalty. Left out: sampling until
    groups are mixed, and the reward for length; all outputs have one length.
    """

    grouped = True
    needs = (*GROUPS, "no_kl")

    low: float = Field(0.2, gt=0, description="the ratio is clipped below 1 minus this")
    high: float = Field(0.28, gt=0, description="the ratio is clipped above 1 plus this")

    def term(self, seen: Seen) -> Term:
        advantages = z_scores(seen.rollout.rewards, -1)
        terms, metrics = _clipped(seen, advantages, self.low, self.high, 0.0)
        return Term(seen.mean(terms), metrics)


class DAPO(DAPOLite):
    """Another name of DAPOLite."""


class GRPOToken(Clip):
    """Z-scores over the candidates of a prefix, whose clipped terms add up.

    The original's own: GRPO's terms over the candidates of each prefix, in place of rollouts.
    """

    agents_lack = "rewards of several candidates at every token"
    needs = CANDIDATES
    candidates = True

    def term(self, seen: Seen) -> Term:
        candidates = seen.rollout.candidates
        current, old = seen.table.gather(-1, candidates.actions), candidates.behaviour
        advantages = z_scores(candidates.rewards, -1)
        divergence = kl_k3(current, old)
        terms = ppo_clip(current, old, advantages, self.clip, self.clip)
        means = {
            "adv_abs_mean": advantages.abs().mean(-1),
            "ratio_mean": ratios(current, old).mean(-1),
            "reverse_kl_mean": divergence.detach().mean(-1),
            **candidates.columns(),
        }
        loss = seen.mean((terms + self.beta * divergence).sum(-1))
        return Term(loss, seen.means(means))


def _over_rollouts(seen: Seen, terms: Tensor) -> Tensor:
    """Mean over rollouts of the sums of their tokens' terms, [S]."""
    return seed_mean((terms * seen.rollout.mask).sum((-1, -2)), seen.rollout.keep)


def _clipped(
    seen: Seen, advantages: Tensor, low: float, high: float, beta: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """Clipped terms [S, N, K, M, T] of advantages [S, N, K], and columns of the log."""
    terms, columns = surrogate(seen, seen.over_tokens(advantages), low, high)
    divergence = kl_k3(seen.logprobs, seen.rollout.behaviour)
    return terms + beta * divergence, columns | {"reverse_kl_mean": seen.mean(divergence.detach())}
