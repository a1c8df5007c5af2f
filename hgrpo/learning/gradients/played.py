"""Plays groups for a gradient analysis, and prepares them as a training step would."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from hgrpo.credit.base import Group, assign_all
from hgrpo.games.base import Task
from hgrpo.games.streams import generator
from hgrpo.learning.batch import (
    TrainingSequence,
    group_advantages,
    scale_advantages,
    training_returns,
    training_sequences,
)
from hgrpo.learning.chosen import Chosen, flat, scale_living, where
from hgrpo.learning.critic import FLOOR, Critic, estimates, store_advantages
from hgrpo.learning.filters.batch import sample_deviation
from hgrpo.learning.round import Round
from hgrpo.trajectories.trajectory import Trajectory


@dataclass(frozen=True)
class Prepared:
    """The inputs of a training step on the analysed groups.

    Attributes:
        groups: the trainer's input for each group, with advantages before whitening and scaling.
        deviations: sample standard deviation of each group's returns, float64 [G].
        chosen: the filter's selection.
        shift, scale: constants such that (A - shift) / scale are the advantages of a training step.
            They are computed over the selected trajectories, or over all if none is selected.
    """

    groups: list[list[TrainingSequence]]
    deviations: np.ndarray
    chosen: Chosen
    shift: float
    scale: float


def analysed_tasks(panel: Sequence[Task], groups: int, seed: int) -> list[Task]:
    """The tasks to play, which are the same for all arms and rounds of a seed."""
    order = generator("gradients-tasks", seed).permutation(len(panel))
    return [panel[index] for index in order[:groups]]


def play(
    of: Round, tasks: Sequence[Task], rollouts: int, on_trajectory: Callable[[], None]
) -> list[Group]:
    """Play one group per task, with random streams that are not used in training."""
    of.load_engine(tasks)
    stream = ("gradients", of.id.seed, of.id.index)
    played = of.collector.collect(tasks, rollouts, stream, on_trajectory)
    return [Group(group, (*stream, group[0].task.task_id)) for group in played]


def prepare(of: Round, groups: Sequence[Group]) -> Prepared:
    """Compute credit, advantages and the filter's selection, as in the next training step.

    Raises:
        UserError: the assigner returned invalid credit.
    """
    training, method = of.learner.training, of.id.method
    played = [group.trajectories for group in groups]
    advantages = [
        group_advantages(group, credit, method, training)
        for group, credit in zip(groups, assign_all(of.assigner, groups), strict=True)
    ]
    # The engine sleeps only after credit assignment, because some assigners play continuations.
    of.collector.engine.sleep()
    chosen = of.choose(played, advantages)
    trajectories = flat(played)
    sequences = training_sequences(trajectories)
    if of.learner.critic is None:
        rms = training.advantage_rms
        factor = 1.0 if rms is None else scale_living(played, advantages, chosen, rms)
        shift, scale = 0.0, 1.0 / factor
    else:
        shift, scale = _estimated(of, of.learner.critic, trajectories, sequences, chosen)
    of.learner.score_reference(sequences)
    ends = np.cumsum([len(group) for group in played])
    return Prepared(
        [sequences[end - len(group) : end] for group, end in zip(played, ends, strict=True)],
        np.array([sample_deviation(training_returns(group, training)) for group in played]),
        chosen,
        shift,
        scale,
    )


def _estimated(
    of: Round,
    critic: Critic,
    trajectories: Sequence[Trajectory],
    sequences: Sequence[TrainingSequence],
    chosen: Chosen,
) -> tuple[float, float]:
    """Store the critic's unwhitened advantages; return the mean and divisor for whitening."""
    training = of.learner.training
    # Calibrate an untrained critic, as in its first training step.
    critic.calibrate(np.array([trajectory.env_return for trajectory in trajectories]))
    made = estimates(critic, trajectories, critic.values(sequences), of.id.method, training)
    used = chosen.flat if chosen.flat.any() else np.ones_like(chosen.flat)
    row = store_advantages(trajectories, sequences, made, used)
    rms = training.advantage_rms
    factor = 1.0 if rms is None else scale_advantages(where(trajectories, used), rms)
    for sequence, each in zip(sequences, made, strict=True):
        sequence.advantages = torch.from_numpy(each.advantages).float()
    return row["advantage_mean"], max(row["advantage_deviation"], FLOOR) / factor
