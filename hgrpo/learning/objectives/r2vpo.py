"""R2VPO: a penalty on the variance of the ratio."""

from torch import Tensor

from hgrpo.learning.objectives.importance import ratios
from hgrpo.learning.objectives.shapes import check_shapes


def r2vpo_weights(
    logprobs: Tensor, behaviour: Tensor, advantages: Tensor, penalty: float
) -> Tensor:
    """r (A - 2 penalty (r - 1)): the gradient of r A - penalty (r - 1)^2. No ratio is capped.

    The paper that names R2VPO: https://arxiv.org/abs/2601.03320.
    """
    check_shapes(logprobs, advantages)
    ratio = ratios(logprobs, behaviour)
    return ratio * (advantages.detach() - 2.0 * penalty * (ratio - 1.0))
