"""The turns of a group as arrays, one rollout after another."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hgrpo.trajectories.trajectory import Trajectory


@dataclass(frozen=True)
class Turns:
    """N turns of K rollouts.

    Attributes:
        lengths: int [K], number of turns of each rollout.
        success: bool [K], whether the rollout succeeded.
        truncated: bool [K], whether the turn cap or the context length ended the rollout.
        rollout: int [N], index of the turn's rollout.
        time: int [N], the turn's index in its rollout, from 0.
        last: int [M], index in 0..N-1 of the last turn of each rollout that has turns.
        action: int [N], number of the turn's command; equal `action_key`s have equal numbers.
        inadmissible: bool [N], whether the action was inadmissible.
    """

    lengths: np.ndarray
    success: np.ndarray
    truncated: np.ndarray
    rollout: np.ndarray
    time: np.ndarray
    last: np.ndarray
    action: np.ndarray
    inadmissible: np.ndarray

    def __len__(self) -> int:
        return len(self.rollout)

    @cached_property
    def remaining(self) -> np.ndarray:
        """Number of turns that follow in the same rollout, int [N]."""
        return self.lengths[self.rollout] - 1 - self.time


def action_key(action: str) -> str:
    """The command in lower case, stripped; "<invalid>" for every reply without a command."""
    return action.strip().lower() or "<invalid>"


def numbered(labels: Iterable[Hashable]) -> np.ndarray:
    """Number labels 0, 1, .. in order of first appearance, int [N]; equal labels share a number."""
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(label, len(known)) for label in labels], dtype=np.int64)


def flatten(trajectories: Sequence[Trajectory]) -> Turns:
    """All turns of the trajectories, in order."""
    lengths = np.array([len(trajectory.turns) for trajectory in trajectories], dtype=np.int64)
    ends = np.cumsum(lengths)
    rollout = np.repeat(np.arange(len(lengths)), lengths)
    turns = [turn for trajectory in trajectories for turn in trajectory.turns]
    key_of = {action: action_key(action) for action in {turn.action for turn in turns}}
    return Turns(
        lengths=lengths,
        success=np.array([trajectory.success for trajectory in trajectories], dtype=bool),
        truncated=np.array([trajectory.truncated for trajectory in trajectories], dtype=bool),
        rollout=rollout,
        time=np.arange(len(rollout)) - np.repeat(ends - lengths, lengths),
        last=ends[lengths > 0] - 1,
        action=numbered(key_of[turn.action] for turn in turns),
        inadmissible=np.array([not turn.admissible for turn in turns], dtype=bool),
    )
