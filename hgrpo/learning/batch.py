"""Converts groups of trajectories to the inputs of an update."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from hgrpo.credit.base import Group
from hgrpo.errors import TrainingError
from hgrpo.learning.advantages import (
    blend,
    is_dead,
    is_flat,
    trajectory_advantages,
    turn_advantages,
)
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.ranks import Ranks
from hgrpo.learning.settings import TrainingConfig
from hgrpo.policy.logprobs import micro_batches
from hgrpo.trajectories.trajectory import Trajectory


@dataclass
class SampledSequence:
    """A sequence of tokens, N of which were sampled by the policy.

    Attributes:
        spans: [start, end) of each sampled part of `token_ids`.
        name: the sequence's name in error messages.
    """

    token_ids: list[int]
    spans: list[tuple[int, int]]
    name: str = field(default="a sequence", kw_only=True)

    @property
    def sampled(self) -> int:
        """Number of sampled tokens, N."""
        return sum(end - start for start, end in self.spans)


def not_finite(values: Tensor, sequences: Sequence[SampledSequence]) -> str:
    """Trajectory and turn of the first non-finite value in `values` [N]; "" if all are finite."""
    turns = [(s.name, turn, b - a) for s in sequences for turn, (a, b) in enumerate(s.spans)]
    parts = values.isfinite().split([length for _, _, length in turns])
    bad = (f"{s} turn {t}" for (s, t, _), good in zip(turns, parts, strict=True) if not good.all())
    return "" if values.isfinite().all() else next(bad)


def by_sequence(
    compute: Callable[[list[SampledSequence]], Tensor],
    sequences: Sequence[SampledSequence],
    microbatch_tokens: int,
    ranks: Ranks,
    name: str,
) -> list[Tensor]:
    """Compute values for the N sampled tokens of each sequence; divide the work among ranks.

    Args:
        compute: maps a micro-batch to the concatenated values of its sampled tokens.
        name: name of the values in error messages.

    Raises:
        TrainingError: a value is not finite. The message contains trajectory and turn.
    """
    parts = micro_batches([len(s.token_ids) for s in sequences], microbatch_tokens)
    mine = [compute([sequences[i] for i in part]) for part in ranks.share(parts)]
    rows: dict[int, Tensor] = {}
    for part, values in zip(parts, ranks.join(mine), strict=True):
        chosen = [sequences[i] for i in part]
        if bad := not_finite(values, chosen):
            raise TrainingError(f"{bad}: {name} is not finite")
        rows |= dict(zip(part, values.split([s.sampled for s in chosen]), strict=True))
    return [rows[i] for i in range(len(sequences))]


@dataclass
class TrainingSequence(SampledSequence):
    """One trajectory as input of the trainer; its spans are the replies.

    Attributes:
        behaviour: float32 [N], the engine's log-prob of each sampled token.
        advantages: float32 [N], the advantage of each sampled token.
        reference: float32 [N], log-probs of the reference policy. `Learner.update` sets them for
            the trajectories on which the KL is measured.
        old: float32 [N], the trainer's log-probs before the first optimiser step. `Learner.update`
            sets them if `importance_cap` is set.
    """

    behaviour: Tensor
    advantages: Tensor
    reference: Tensor | None = None
    old: Tensor | None = None


@dataclass(frozen=True)
class GroupAdvantages:
    """Advantages of a group before blending, and whether the group is dead.

    Attributes:
        trajectory: A_traj, float64 [K].
        turns: A_turn, K arrays [T_k].
        flat: whether turn credit or A_turn is constant within every trajectory (`is_flat`).
    """

    trajectory: np.ndarray
    turns: list[np.ndarray]
    dead: bool
    flat: bool


def training_return(trajectory: Trajectory, invalid_action_penalty: float) -> float:
    """The return used for advantages: R - penalty * share of inadmissible turns."""
    share = trajectory.inadmissible / max(1, len(trajectory.turns))
    return trajectory.env_return - invalid_action_penalty * share


def training_returns(group: Sequence[Trajectory], training: TrainingConfig) -> np.ndarray:
    """`training_return` of each trajectory, float64 [K]."""
    return np.array([training_return(t, training.invalid_action_penalty) for t in group])


def group_advantages(
    group: Group, credit: Sequence[np.ndarray], method: MethodConfig, training: TrainingConfig
) -> GroupAdvantages:
    """Compute advantages from turn credit (K arrays [T_k]); store credit and advantage per turn."""
    returns = training_returns(group.trajectories, training)
    per_trajectory = trajectory_advantages(returns, method.group_norm, method.norm_floor)
    per_turn = turn_advantages(credit, method.turn_norm, method.norm_floor)
    blended = blend(method.alpha, per_trajectory, per_turn)
    for trajectory, credits, advantages in zip(group.trajectories, credit, blended, strict=True):
        for turn, value, advantage in zip(trajectory.turns, credits, advantages, strict=True):
            turn.credit, turn.advantage = float(value), float(advantage)
    dead = is_dead(blended, returns, method.dead_groups)
    flat = is_flat(credit) or is_flat(per_turn)
    return GroupAdvantages(per_trajectory, per_turn, dead, flat)


def scale_advantages(trajectories: Sequence[Trajectory], rms: float) -> float:
    """Scale the trajectories' advantages so that their root mean square over turns is `rms`.

    Returns:
        The factor by which they were multiplied; 1 if all advantages are 0.
    """
    turns = [turn for played in trajectories for turn in played.turns]
    current = float(np.sqrt(np.mean([turn.advantage**2 for turn in turns]))) if turns else 0.0
    factor = rms / current if current else 1.0
    for turn in turns:
        turn.advantage *= factor
    return factor


def forget_advantages(trajectories: Sequence[Trajectory], trained: Sequence[bool]) -> None:
    """Set the advantages of trajectories that are not `trained` to None."""
    for trajectory, part in zip(trajectories, trained, strict=True):
        for turn in [] if part else trajectory.turns:
            turn.advantage = None


def training_sequences(trajectories: Sequence[Trajectory]) -> list[TrainingSequence]:
    """One sequence per trajectory; all sampled tokens of a turn get the turn's advantage.

    Tokens of turns without an advantage get NaN, and must not be used in an update.

    Raises:
        RuntimeError: a turn has more or fewer log-probs than sampled tokens.
    """
    sequences = []
    for trajectory in trajectories:
        advantages, logprobs, spans = [], [], trajectory.spans
        # Drop tokens after the last reply, because they may exceed the model's maximum length.
        read = trajectory.token_ids[: spans[-1][1]]
        for number, (turn, (start, end)) in enumerate(zip(trajectory.turns, spans, strict=True)):
            if len(turn.logprobs) != end - start:
                raise RuntimeError(
                    f"{trajectory.name} turn {number}: expected {end - start} log-probs, one per "
                    f"token, got {len(turn.logprobs)}"
                )
            value = math.nan if turn.advantage is None else turn.advantage
            advantages += [value] * (end - start)
            logprobs += turn.logprobs
        numbers = (torch.tensor(each, dtype=torch.float32) for each in (logprobs, advantages))
        sequences.append(TrainingSequence(read, spans, *numbers, name=trajectory.name))
    return sequences
