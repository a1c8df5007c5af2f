"""A teacher's reward: success, less what keeps the student from following.

See "Pedagogical RL", https://noahziems.com/pedagogical-rl. Tensors have one entry a rollout;
`penalty` is at least 0, for example `surprise.spike`.
"""

from torch import Tensor

from hgrpo.learning.objectives.shapes import check_shapes


def learnability(penalty: Tensor, strength: float) -> Tensor:
    """exp(-strength penalty), in (0, 1]; 1 for a rollout that the student would have made."""
    return (-strength * penalty).exp()


def product_reward(success: Tensor, penalty: Tensor, strength: float) -> Tensor:
    """Success times learnability: a failure earns 0, however easy it is to follow."""
    check_shapes(success, penalty)
    return success * learnability(penalty, strength)


def additive_reward(success: Tensor, penalty: Tensor, strength: float) -> Tensor:
    """Success - strength penalty: an easy failure can earn more than a hard success."""
    check_shapes(success, penalty)
    return success - strength * penalty
