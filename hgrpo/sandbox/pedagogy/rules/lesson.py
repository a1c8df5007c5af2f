"""What the teacher is paid for a rollout, as the student sees it."""

from torch import Tensor

from hgrpo.learning.objectives.lesson import additive_reward, learnability, product_reward
from hgrpo.learning.objectives.surprise import spike, surprise_gaps
from hgrpo.sandbox.pedagogy.rule_settings import Lesson
from hgrpo.sandbox.policies import taken


def reward(
    success: Tensor, table: Tensor, actions: Tensor, own: Lesson
) -> tuple[Tensor, dict[str, Tensor]]:
    """The teacher is paid for success that does not surprise the student (product or sum).

    Returns rewards [S, N, K] of the teacher's rollouts, and what the log says of them.

    Args:
        success: [S, N, K], 1 for a right answer.
        table: the student's log-probs along the rollouts, [S, N, K, 1, T, V].
        actions: int64 [S, N, K, 1, T].
    """
    chosen = taken(table, actions)
    gaps = surprise_gaps(table, chosen)[..., 0, :]
    surprisal = -chosen[..., 0, :].mean(-1)
    spikes = spike(gaps, own.beta)
    penalty = {"spike": spikes, "mean": gaps.mean(-1), "surprisal": surprisal}[own.penalty]
    form = product_reward if own.reward == "product" else additive_reward
    paid = form(success, penalty, own.strength)
    column = "pedagogy_reward" if own.reward == "product" else "teacher_additive_reward"
    metrics = {
        "task_reward": success,
        column: paid,
        "learnability": learnability(penalty, own.strength),
        "spike_penalty": spikes,
        "avg_surprise_gap": gaps.mean(-1),
        "max_surprise_gap": gaps.amax(-1),
        "avg_student_surprisal": surprisal,
    }
    return paid, {name: values.flatten(1).mean(1) for name, values in metrics.items()}
