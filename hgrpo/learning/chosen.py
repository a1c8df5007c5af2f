"""Selects the trajectories of a step for the update, and computes the weights of their groups."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hgrpo.learning.batch import (
    GroupAdvantages,
    TrainingSequence,
    scale_advantages,
    training_returns,
)
from hgrpo.learning.filters.batch import Measures, filter_batch, mean_deviation
from hgrpo.learning.settings import TrainingConfig
from hgrpo.trajectories.trajectory import Trajectory


@dataclass(frozen=True)
class Chosen:
    """The trajectories selected for the update, from G groups of K trajectories.

    Attributes:
        trajectories: G arrays bool [K], True for the trajectories that the update uses.
        weights: float64 [G], factors by which to multiply the groups' advantages.
        empty: whether the filter removed all trajectories.
        row: log entries of the filter; empty if there is no filter.
    """

    trajectories: list[np.ndarray]
    weights: np.ndarray
    empty: bool
    row: dict[str, float | None]

    @property
    def flat(self) -> np.ndarray:
        """Mask of the trajectories that the update uses, bool [G * K], group by group."""
        return np.concatenate(self.trajectories)


def choose(
    groups: Sequence[Sequence[Trajectory]],
    take_part: Sequence[bool],
    training: TrainingConfig,
    entropies: Sequence[np.ndarray] | None,
) -> Chosen:
    """Select the groups for which `take_part` is True, then apply the configured filter, if any.

    Args:
        entropies: mean entropy per sampled token of each trajectory, G arrays [K]; None if the
            filter does not use entropies.
    """
    masks = [np.full(len(group), part) for group, part in zip(groups, take_part, strict=True)]
    if training.filter is None:
        return Chosen(masks, np.ones(len(groups)), False, {})
    parts, weights, row = filter_batch(measures(groups, training, entropies), training.filter)
    masks = [mask & part for mask, part in zip(masks, parts, strict=True)]
    return Chosen(masks, weights, not np.any(weights), row)


def measures(
    groups: Sequence[Sequence[Trajectory]],
    training: TrainingConfig,
    entropies: Sequence[np.ndarray] | None = None,
) -> list[Measures]:
    """The inputs of the filter's scores, group by group."""
    return [
        Measures(
            training_returns(group, training),
            np.array([t.success for t in group]),
            np.array([t.action_tokens for t in group]),
            None if entropies is None else entropies[number],
        )
        for number, group in enumerate(groups)
    ]


def spread_of_returns(groups: Sequence[Sequence[Trajectory]], training: TrainingConfig) -> float:
    """Mean over groups of the sample standard deviation of returns."""
    return mean_deviation([training_returns(group, training) for group in groups])


def scale_living(
    groups: Sequence[Sequence[Trajectory]],
    advantages: Sequence[GroupAdvantages],
    chosen: Chosen,
    rms: float,
) -> float:
    """Apply `scale_advantages` to the selected trajectories of groups that are not dead."""
    alive = np.repeat([not each.dead for each in advantages], [len(group) for group in groups])
    return scale_advantages(where(flat(groups), alive & chosen.flat), rms)


def flat(groups: Sequence[Sequence[Trajectory]]) -> list[Trajectory]:
    """The trajectories of all groups, group by group."""
    return [trajectory for group in groups for trajectory in group]


def where(trajectories: Sequence[Trajectory], mask: np.ndarray) -> list[Trajectory]:
    """The trajectories selected by the mask, bool [n]."""
    return [trajectory for trajectory, part in zip(trajectories, mask, strict=True) if part]


def weigh(
    groups: Sequence[Sequence[Trajectory]],
    weights: np.ndarray,
    sequences: Sequence[TrainingSequence] = (),
) -> None:
    """Multiply the advantages of each group's turns and tokens by the group's weight."""
    factors = np.repeat(weights, [len(group) for group in groups])
    for trajectory, factor in zip(flat(groups), factors, strict=True):
        for turn in trajectory.turns:
            if turn.advantage is not None:
                turn.advantage *= float(factor)
    for sequence, factor in zip(sequences, factors if sequences else (), strict=True):
        sequence.advantages = sequence.advantages * float(factor)
