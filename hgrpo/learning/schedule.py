"""Which training tasks a round plays."""

from collections.abc import Sequence

from hgrpo.envs.base import Task
from hgrpo.streams import generator


def task_offset(round_index: int, steps_per_round: int, tasks_per_step: int) -> int:
    """Position of a round's first task in its seed's task order; rounds count from 1.

    Rounds take consecutive, disjoint slices of the order. The number of rounds has no influence, so
    adding rounds to a study leaves its earlier rounds as they are.
    """
    return (round_index - 1) * steps_per_round * tasks_per_step


def tasks_of_step(
    panel: Sequence[Task],
    seed: int,
    round_index: int,
    step: int,
    steps_per_round: int,
    tasks_per_step: int,
) -> list[Task]:
    """The tasks of one step, the same for every method.

    A seed's order is a permutation of the panel, then another permutation, and so on. So no task
    is played a second time before every task has been played once.
    """
    start = task_offset(round_index, steps_per_round, tasks_per_step) + step * tasks_per_step
    orders: dict[int, list[int]] = {}
    chosen = []
    for position in range(start, start + tasks_per_step):
        epoch, index = divmod(position, len(panel))
        if epoch not in orders:
            orders[epoch] = generator("task-order", seed, epoch).permutation(len(panel)).tolist()
        chosen.append(panel[orders[epoch][index]])
    return chosen
