"""TPO: the policy is fitted to a target over the group's rollouts.

See https://github.com/jeankaddour/tpo, a public repository. `scores` are the log-probs
of whole rollouts, `skills` their standardised rewards; both are float, with the group along `dim`.
"""

from torch import Tensor

from hgrpo.learning.objectives.shapes import check_shapes


def tpo_target(old_scores: Tensor, skills: Tensor, eta: float, dim: int) -> Tensor:
    """q = softmax(log_softmax(old scores) + u / eta): the old policy, tilted by skill."""
    check_shapes(old_scores, skills)
    return (old_scores.log_softmax(dim) + skills / eta).softmax(dim).detach()


def unanchored_target(skills: Tensor, eta: float, dim: int) -> Tensor:
    """q = softmax(u / eta): the target of `tpo_target` for an old policy that is uniform."""
    return (skills / eta).softmax(dim).detach()


def target_cross_entropy(scores: Tensor, target: Tensor, dim: int) -> Tensor:
    """-sum q log_softmax(scores) over `dim`; its gradient is softmax(scores) - q."""
    check_shapes(scores, target)
    return -(target * scores.log_softmax(dim)).sum(dim)


def group_pg(scores: Tensor, skills: Tensor, eta: float, dim: int) -> Tensor:
    """-sum u / eta scores over `dim`: a policy gradient with the skills as advantages."""
    check_shapes(scores, skills)
    return -(skills.detach() / eta * scores).sum(dim)
