"""Policy mirror descent as regression on the log-ratio."""

from torch import Tensor

from hgrpo.learning.objectives.shapes import check_shapes


def mirror_descent(log_ratio: Tensor, advantages: Tensor, tau: float) -> Tensor:
    """(tau log(p / p_behaviour) - A)^2 with A = R - E[R].

    It is 0 where p is proportional to p_behaviour exp(A / tau), up to the partition function. See
    "Kimi k1.5: Scaling Reinforcement Learning with LLMs", section 2.3,
    https://arxiv.org/abs/2501.12599, and its analysis, https://arxiv.org/abs/2602.05933.

    Args:
        log_ratio: float, the log-ratio of a whole rollout, with its gradient.
    """
    check_shapes(log_ratio, advantages)
    return (tau * log_ratio - advantages.detach()).square()
