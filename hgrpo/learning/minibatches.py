"""Cuts the trajectories of a batch into the minibatches of a pass."""

import math
from collections.abc import Sequence

import numpy as np

from hgrpo.learning.settings import TrainingConfig


def minibatches(
    order: Sequence[int], training: TrainingConfig, whole_groups: bool = False
) -> list[list[int]]:
    """Consecutive parts of `order`, as equal as possible, one for each optimiser step.

    Args:
        order: indices of trajectories, at least one; those of a group follow each other in the
            batch, `rollouts_per_task` each.
        whole_groups: whether a group must stay together. Groups then come in the order of their
            first trajectories, and a minibatch may be larger than others by most of a group.
    """
    size = training.minibatch_trajectories
    number = math.ceil(len(order) / size) if size else training.minibatches
    if not whole_groups:
        return [part.tolist() for part in np.array_split(order, min(len(order), number))]
    groups: dict[int, list[int]] = {}
    for index in order:
        groups.setdefault(index // training.rollouts_per_task, []).append(index)
    parts = np.array_split(np.arange(len(groups)), min(len(groups), number))
    each = list(groups.values())
    return [[index for place in part for index in each[place]] for part in parts]
