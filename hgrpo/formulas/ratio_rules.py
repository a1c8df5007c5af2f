"""Rules that weight tokens by importance ratios: ASPO (inverse ratio) and R2VPO (penalty)."""

from collections.abc import Mapping

from pydantic import Field

from hgrpo.formulas.batch import Seen
from hgrpo.formulas.importance import ratios
from hgrpo.formulas.pg import policy_gradient
from hgrpo.formulas.rule import TokenRule
from hgrpo.formulas.tensors import Tensor, torch


def aspo_weights(
    logprobs: Tensor, behaviour: Tensor, advantages: Tensor, clip_low: float, clip_high: float
) -> Tensor:
    """w A with w = min(1 / r, 1 + clip_high) if A > 0, and max(r, 1 - clip_low) otherwise.

    Among tokens with A > 0, those that have become more likely (r > 1) get less weight. See
    "ASPO: Asymmetric Importance Sampling Policy Optimization", https://arxiv.org/abs/2510.06062.
    """
    ratio = ratios(logprobs, behaviour)
    up = ratio.reciprocal().clamp(max=1.0 + clip_high)
    down = ratio.clamp(min=1.0 - clip_low)
    return torch.where(advantages > 0, up, down) * advantages.detach()


class ASPO(TokenRule):
    """The policy gradient weighted by the inverse ratio if A > 0, and by the ratio otherwise.

    The inverse ratio is at most 1 + high, and the ratio is at least 1 - low. Kept from the paper:
    inverse ratios for positive advantages A, and bounds on the weights. Changed: advantages are
    rewards minus the run's `baseline`, without groups.
    """

    agents = True
    needs = ("off_policy",)
    of_training = {"low": "clip_low", "high": "clip_high"}

    low: float = Field(0.2, ge=0, description="ratios are at least 1 - low if advantage <= 0")
    high: float = Field(0.28, ge=0, description="inverse ratios are at most 1 + high")

    def terms(self, logprobs: Tensor, old: Tensor, advantages: Tensor) -> Tensor:
        weights = aspo_weights(logprobs, old, advantages, self.low, self.high)
        return policy_gradient(logprobs, weights)

    def columns(self, seen: Seen) -> Mapping[str, Tensor]:
        old, advantages = seen.rollout.behaviour, seen.advantages
        ones = advantages.sign().where(advantages != 0, -advantages.new_ones(()))
        return {
            "ratio_mean": ratios(seen.logprobs, old),
            "weight_mean": aspo_weights(seen.logprobs, old, ones, self.low, self.high) * ones,
            "pos_frac": (advantages > 0).float(),
        }


def r2vpo_weights(
    logprobs: Tensor, behaviour: Tensor, advantages: Tensor, penalty: float
) -> Tensor:
    """r (A - 2 penalty (r - 1)): derivative of r A - penalty (r - 1)^2 with respect to log r.

    R2VPO is from https://arxiv.org/abs/2601.03320.
    """
    ratio = ratios(logprobs, behaviour)
    return ratio * (advantages.detach() - 2.0 * penalty * (ratio - 1.0))


class R2VPO(TokenRule):
    """The policy gradient weighted by the ratio, with a penalty on the ratio's variance.

    Kept from the paper: a penalty on the variance of the ratio instead of a clip. Changed: the
    penalty weight is fixed, while the paper adapts it by a primal-dual method.
    """

    agents = True
    needs = ("off_policy",)

    penalty: float = Field(1.0, ge=0, description="coefficient of (ratio - 1) squared")

    def terms(self, logprobs: Tensor, old: Tensor, advantages: Tensor) -> Tensor:
        return policy_gradient(logprobs, r2vpo_weights(logprobs, old, advantages, self.penalty))

    def columns(self, seen: Seen) -> Mapping[str, Tensor]:
        ratio = ratios(seen.logprobs, seen.rollout.behaviour)
        return {"ratio_mean": ratio, "var_penalty_mean": (ratio - 1.0).square()}
