"""The score-function gradient, plain and with capped importance weights."""

from torch import Tensor

from hgrpo.learning.objectives.importance import importance_weights
from hgrpo.learning.objectives.shapes import check_shapes


def policy_gradient(logprobs: Tensor, weights: Tensor) -> Tensor:
    """-w log p, where w carries no gradient; with w = A the REINFORCE estimator.

    Williams 1992, "Simple Statistical Gradient-Following Algorithms for Connectionist
    Reinforcement Learning", https://doi.org/10.1007/BF00992696.
    """
    check_shapes(logprobs, weights)
    return -logprobs * weights.detach()


def pg_weights(logprobs: Tensor, behaviour: Tensor, advantages: Tensor, cap: float) -> Tensor:
    """min(r, cap) A with r = exp(logprobs - behaviour), token by token.

    Ionides 2008, "Truncated Importance Sampling", https://doi.org/10.1198/106186008X320456.
    """
    check_shapes(logprobs, advantages)
    return importance_weights(logprobs, behaviour, cap) * advantages.detach()
