"""Selects the tasks that each training step plays."""

from collections.abc import Sequence

from hgrpo.errors import UserError
from hgrpo.games.base import Task
from hgrpo.games.streams import generator
from hgrpo.learning.settings import TrainingConfig


def tasks_of_step(
    panel: Sequence[Task], seed: int, round_index: int, step: int, training: TrainingConfig
) -> list[Task]:
    """The tasks of a step, which do not depend on the method. Rounds start at 1, steps at 0.

    Each seed plays successive permutations of the panel, so that every task is played once before
    any task is repeated. Tasks are not repeated within a step. Rounds use consecutive parts of this
    order, so that adding rounds to a study does not change its earlier rounds.

    Raises:
        UserError: a step plays more tasks than the panel has.
    """
    many, size = training.tasks_per_step, len(panel)
    if many > size:
        raise UserError(f"training.tasks_per_step: {many}, but the train panel has {size} tasks")
    steps_before = (round_index - 1) * training.steps_per_round + step
    first, last = steps_before * many, (steps_before + 1) * many - 1
    epoch, start = divmod(first, size)
    order = _order(seed, epoch, size, many)
    if last // size > epoch:
        order = order + _order(seed, epoch + 1, size, many)
    return [panel[index] for index in order[start : start + many]]


def _order(seed: int, epoch: int, size: int, many: int) -> list[int]:
    """The order of the panel's tasks in epoch `epoch` (from 0), with `many` tasks per step.

    If a step spans two epochs, tasks that the step has already played in the first epoch are
    swapped with later tasks of the second epoch.
    """
    order = generator("task-order", seed, epoch).permutation(size).tolist()
    played = epoch * size % many
    if not played:
        return order
    before = set(_order(seed, epoch - 1, size, many)[-played:])
    rest = many - played
    later = (place for place in range(rest, size) if order[place] not in before)
    for place in range(rest):
        if order[place] in before:
            other = next(later)
            order[place], order[other] = order[other], order[place]
    return order


def further_tasks(
    panel: Sequence[Task], seed: int, round_index: int, step: int, training: TrainingConfig
) -> list[Task]:
    """Additional tasks that a step may play after `tasks_of_step`, in order.

    They are drawn from the whole panel without affecting `tasks_of_step`, which is therefore the
    same for all methods. Tasks are not repeated within a step. The result is empty without
    `dynamic_sampling`.
    """
    if training.dynamic_sampling is None:
        return []
    first = {task.task_id for task in tasks_of_step(panel, seed, round_index, step, training)}
    order = generator("further-tasks", seed, round_index, step).permutation(len(panel)).tolist()
    others = [panel[index] for index in order if panel[index].task_id not in first]
    return others[: training.most_tasks_per_step - training.tasks_per_step]
