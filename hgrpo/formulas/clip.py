"""Clipped surrogate losses. All tensors are float and have equal shapes, one entry per token."""

from pydantic import Field

from hgrpo.formulas.batch import Seen
from hgrpo.formulas.importance import ratios
from hgrpo.formulas.rule import TokenRule
from hgrpo.formulas.tensors import Tensor, check_shapes, torch


def ppo_clip(
    logprobs: Tensor, behaviour: Tensor, advantages: Tensor, clip_low: float, clip_high: float
) -> Tensor:
    """-min(r A, clip(r, 1 - clip_low, 1 + clip_high) A) with r = exp(logprobs - behaviour).

    Schulman et al. 2017, "Proximal Policy Optimization Algorithms", equation 7,
    https://arxiv.org/abs/1707.06347. clip_high > clip_low is the clip-higher technique of Yu et al.
    2025, "DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
    https://arxiv.org/abs/2503.14476.
    """
    check_shapes(logprobs, behaviour, advantages)
    ratio = torch.exp(logprobs - behaviour)
    clipped = ratio.clamp(1.0 - clip_low, 1.0 + clip_high)
    return -torch.minimum(ratio * advantages, clipped * advantages)


def dual_clip(
    logprobs: Tensor,
    behaviour: Tensor,
    advantages: Tensor,
    clip_low: float,
    clip_high: float,
    bound: float,
) -> Tensor:
    """`ppo_clip`, but the loss of a token with a negative advantage A is at most `bound` * |A|.

    Without the cap, a token with a large ratio dominates the loss. See Ye et al. 2020, "Mastering
    Complex Control in MOBA Games with Deep Reinforcement Learning", equation 5,
    https://arxiv.org/abs/1912.09729.
    """
    terms = ppo_clip(logprobs, behaviour, advantages, clip_low, clip_high)
    return torch.where(advantages < 0, torch.minimum(terms, -bound * advantages), terms)


def clip_fraction(
    logprobs: Tensor, behaviour: Tensor, advantages: Tensor, clip_low: float, clip_high: float
) -> Tensor:
    """Fraction of tokens whose gradient is 0 because of the clip in `ppo_clip`, a scalar."""
    check_shapes(logprobs, behaviour, advantages)
    ratio = torch.exp(logprobs - behaviour)
    high = (advantages > 0) & (ratio > 1.0 + clip_high)
    low = (advantages < 0) & (ratio < 1.0 - clip_low)
    return (high | low).float().mean()


def surrogate(
    seen: Seen, advantages: Tensor, low: float, high: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss `ppo_clip` of each token of a sandbox batch, and metrics to log, [S] each."""
    old = seen.rollout.behaviour
    columns = {"adv_abs_mean": advantages.abs(), "ratio_mean": ratios(seen.logprobs, old)}
    return ppo_clip(seen.logprobs, old, advantages, low, high), seen.means(columns)


class PPOClip(TokenRule):
    """The clipped surrogate of PPO, which is the default for agents."""

    piece = ""
    agents = True
    of_training = {"low": "clip_low", "high": "clip_high"}

    low: float = Field(gt=0, description="lower clip range: ratios are clipped at 1 - low")
    high: float = Field(gt=0, description="upper clip range: ratios are clipped at 1 + high")

    def terms(self, logprobs: Tensor, old: Tensor, advantages: Tensor) -> Tensor:
        return ppo_clip(logprobs, old, advantages, self.low, self.high)

    def clipped(self, logprobs: Tensor, old: Tensor, advantages: Tensor) -> Tensor:
        return clip_fraction(logprobs, old, advantages, self.low, self.high)


class DualClip(PPOClip):
    """PPOClip, where the loss of a token with a negative advantage has an upper bound."""

    bound: float = Field(
        3.0, gt=1, description="maximum loss for negative advantages, in multiples of |advantage|"
    )

    def terms(self, logprobs: Tensor, old: Tensor, advantages: Tensor) -> Tensor:
        return dual_clip(logprobs, old, advantages, self.low, self.high, self.bound)
