"""What the teacher is paid for a rollout, as the student sees it.

A reward takes `success` [S, N, K], which is 1 for a right answer; the student's log-probs `table`
[S, N, K, 1, T, V] along the teacher's rollouts; their `actions`, int64 [S, N, K, 1, T]; and the
rule's settings. It returns what the rollouts earn, [S, N, K], and columns of the log, [S] each.
"""

from collections.abc import Mapping

from torch import Tensor

from hgrpo.learning.objectives.lesson import additive_reward, learnability, product_reward
from hgrpo.learning.objectives.surprise import spike, surprise_gaps
from hgrpo.sandbox.pedagogy.rule_settings import Lesson, Taught
from hgrpo.sandbox.policies import taken
from hgrpo.sandbox.rollout import seed_mean


def reward(
    success: Tensor, table: Tensor, actions: Tensor, own: Lesson
) -> tuple[Tensor, dict[str, Tensor]]:
    """The teacher is paid for success that does not surprise the student (product or sum)."""
    gaps = surprise_gaps(table, taken(table, actions))[..., 0, :]
    surprisal = _surprisal(table, actions)
    spikes = spike(gaps, own.beta)
    penalty = {"spike": spikes, "mean": gaps.mean(-1), "surprisal": surprisal}[own.penalty]
    form = product_reward if own.reward == "product" else additive_reward
    paid = form(success, penalty, own.strength)
    column = "pedagogy_reward" if own.reward == "product" else "teacher_additive_reward"
    columns = {
        "task_reward": success,
        column: paid,
        "learnability": learnability(penalty, own.strength),
        "spike_penalty": spikes,
        "avg_surprise_gap": gaps.mean(-1),
        "max_surprise_gap": gaps.amax(-1),
        "avg_student_surprisal": surprisal,
    }
    return paid, _means(columns)


def plain_reward(
    success: Tensor, table: Tensor, actions: Tensor, own: Taught
) -> tuple[Tensor, dict[str, Tensor]]:
    """The teacher is paid for success, less `strength` times the student's mean surprisal."""
    surprisal = _surprisal(table, actions)
    paid = additive_reward(success, surprisal, own.strength)
    columns = {
        "task_reward": success,
        "teacher_additive_reward": paid,
        "avg_student_surprisal": surprisal,
    }
    return paid, _means(columns)


def _surprisal(table: Tensor, actions: Tensor) -> Tensor:
    """The mean over a rollout's tokens of -log p, in nats, [S, N, K]."""
    return -taken(table, actions)[..., 0, :].mean(-1)


def _means(columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Means over the rollouts of each seed, [S] each."""
    return {name: seed_mean(values) for name, values in columns.items()}
