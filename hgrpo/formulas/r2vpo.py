"""R2VPO: a penalty on the variance of the ratio."""

from collections.abc import Mapping

from pydantic import Field

from hgrpo.formulas.batch import Seen
from hgrpo.formulas.importance import ratios
from hgrpo.formulas.pg import policy_gradient
from hgrpo.formulas.rule import TokenRule
from hgrpo.formulas.tensors import Tensor


def r2vpo_weights(
    logprobs: Tensor, behaviour: Tensor, advantages: Tensor, penalty: float
) -> Tensor:
    """r (A - 2 penalty (r - 1)): the gradient of r A - penalty (r - 1)^2. No ratio is capped.

    The paper that names R2VPO: https://arxiv.org/abs/2601.03320.
    """
    ratio = ratios(logprobs, behaviour)
    return ratio * (advantages.detach() - 2.0 * penalty * (ratio - 1.0))


class R2VPO(TokenRule):
    """The ratio weighs a token, and its variance is penalised.

    Kept: a penalty on the variance of the ratio in place of a clip. Changed: its weight is fixed;
    the paper adapts it by a primal-dual step.
    """

    agents = True
    needs = ("off_policy",)

    penalty: float = Field(1.0, ge=0, description="coefficient of (ratio - 1) squared")

    def terms(self, logprobs: Tensor, old: Tensor, advantages: Tensor) -> Tensor:
        return policy_gradient(logprobs, r2vpo_weights(logprobs, old, advantages, self.penalty))

    def columns(self, seen: Seen) -> Mapping[str, Tensor]:
        ratio = ratios(seen.logprobs, seen.rollout.behaviour)
        return {"ratio_mean": ratio, "var_penalty_mean": (ratio - 1.0).square()}
