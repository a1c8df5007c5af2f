"""GRPO and its variants: clipped surrogate losses with group-relative advantages.

For the papers, see `clip.ppo_clip`, `group.z_scores`, `group.centred` and `kl.kl_k3`.
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

# Each function maps the rewards [S, N, K] of all rollouts to their advantages [S, N, K].
_NORMS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "std": lambda rewards: z_scores(rewards, -1),
    "mean": lambda rewards: centred(rewards, -1),
    "none": lambda rewards: rewards,
}


class Clip(Rule):
    """Base class of rules with a symmetric clip and a KL penalty to the old policy."""

    # With a clip of 0, rounding errors would determine which tokens have a gradient.
    clip: float = Field(0.2, gt=0, description="ratios are clipped to [1 - clip, 1 + clip]")
    beta: float = Field(0.04, ge=0, description="weight of the k3 KL penalty to the old policy")


class GRPO(Clip):
    """Z-scores as advantages, a symmetric clip, and a KL penalty to the behaviour policy.

    Kept from the paper: z-scores, the clip and the k3 penalty. Changed: the penalty is relative to
    the behaviour policy instead of a fixed reference.
    """

    grouped = True
    needs = GROUPS

    clip: float | None = Field(
        0.2, gt=0, description="ratios are clipped to [1 - clip, 1 + clip]; null: no clipping"
    )
    norm: Literal["std", "mean", "none"] = Field(
        "std", description="std: z-scores; mean: centred rewards; none: raw rewards"
    )
    reduction: Literal["token", "rollout"] = Field(
        "token", description="token: mean over tokens; rollout: mean over rollouts of token sums"
    )

    def term(self, seen: Seen) -> Term:
        advantages = _NORMS[self.norm](seen.rollout.rewards)
        # Clipping positive ratios to [0, infinity] has no effect.
        band = (1.0, math.inf) if self.clip is None else (self.clip, self.clip)
        terms, metrics = _clipped(seen, advantages, *band, self.beta)
        reduce = _over_rollouts if self.reduction == "rollout" else Seen.mean
        return Term(reduce(seen, terms), metrics)


class DrGRPO(Clip):
    """GRPO with centred rewards and sums over tokens.

    Kept from the paper: centred rewards, and sums over tokens. All outputs have equal lengths, so
    there is no length bias. Changed: as in the original sandbox, GRPO's KL penalty is added.
    """

    grouped = True
    needs = GROUPS

    def term(self, seen: Seen) -> Term:
        advantages = centred(seen.rollout.rewards, -1)
        terms, metrics = _clipped(seen, advantages, self.clip, self.clip, self.beta)
        return Term(_over_rollouts(seen, terms), metrics)


class DAPOLite(Rule):
    """GRPO with a wider upper clip and without a KL penalty.

    Kept from the paper: the wider upper clip and the mean over tokens, without a penalty. Omitted:
    dynamic sampling, and the length reward, because all outputs have equal lengths.
    """

    grouped = True
    needs = (*GROUPS, "no_kl")

    low: float = Field(0.2, gt=0, description="lower clip range: ratios are clipped at 1 - low")
    high: float = Field(0.28, gt=0, description="upper clip range: ratios are clipped at 1 + high")

    def term(self, seen: Seen) -> Term:
        advantages = z_scores(seen.rollout.rewards, -1)
        terms, metrics = _clipped(seen, advantages, self.low, self.high, 0.0)
        return Term(seen.mean(terms), metrics)


class DAPO(DAPOLite):
    """Alias of DAPOLite."""


class GRPOToken(Clip):
    """GRPO in which the candidate tokens of a prefix form a group.

    The losses of the candidates are summed. This rule comes from the original sandbox.
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
    """Sum the terms of each rollout's tokens, and average over rollouts, [S]."""
    return seed_mean((terms * seen.rollout.mask).sum((-1, -2)), seen.rollout.keep)


def _clipped(
    seen: Seen, advantages: Tensor, low: float, high: float, beta: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """Loss of each token [S, N, K, M, T] for advantages [S, N, K], and metrics to log."""
    terms, columns = surrogate(seen, seen.over_tokens(advantages), low, high)
    divergence = kl_k3(seen.logprobs, seen.rollout.behaviour)
    return terms + beta * divergence, columns | {"reverse_kl_mean": seen.mean(divergence.detach())}
