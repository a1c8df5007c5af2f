"""What a credit assigner is, and what it may use."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hgrpo.errors import UserError
from hgrpo.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    from hgrpo.agent.conversation import Conversation
    from hgrpo.policy.policy import Policy
    from hgrpo.rollout.collector import Collector


@dataclass(frozen=True)
class Group:
    """K trajectories of one task, and the name of the group's random stream."""

    trajectories: Sequence[Trajectory]
    stream: tuple[object, ...]


@dataclass(frozen=True)
class Context:
    """What an assigner may use beside the trajectories; None where a run has none.

    Attributes:
        environment: name of its folder in hgrpo/envs.
        policy, conversation: the policy as it plays and its tokens, for hidden states.
        collector: plays on from any turn.
        cache_dir: folder shared by all jobs of a study.
        fitted: folder of what the fit stage of the previous round wrote.
    """

    environment: str = ""
    policy: "Policy | None" = None
    conversation: "Conversation | None" = None
    collector: "Collector | None" = None
    cache_dir: Path | None = None
    fitted: Path | None = None


class CreditAssigner(Protocol):
    """Says which turn earned the return.

    An assigner may have a method `report() -> dict[str, float]`: numbers for the log, of the
    groups since the last report. One whose attribute `reads_embeddings` is true gets trajectories
    with an embedding of each turn from engines that pool them; one whose `reads_situations` is true
    gets turns with the fingerprints of their situation.
    """

    def assign(self, group: Group) -> list[np.ndarray]:
        """Credit of every turn: K float64 arrays, the k-th as long as trajectory k has turns."""
        ...


def assign_all(assigner: CreditAssigner, groups: Sequence[Group]) -> list[list[np.ndarray]]:
    """Credit of several groups; an assigner that would rather see them together may.

    Returns:
        For each group K float64 arrays, the k-th as long as trajectory k has turns, all finite.

    Raises:
        UserError: the assigner gave anything else; it, the task, the rollout and the turn are
            named.
    """
    together = getattr(assigner, "assign_many", None)
    given = together(groups) if together else [assigner.assign(group) for group in groups]
    name = f"{type(assigner).__module__}.{type(assigner).__qualname__}"
    _check_list(given, len(groups), f"{name}.assign_many", "groups")
    return [_checked(credit, group, name) for credit, group in zip(given, groups, strict=True)]


def _checked(credit: object, group: Group, name: str) -> list[np.ndarray]:
    trajectories = group.trajectories
    task = f"{name}: task {trajectories[0].task.task_id}" if trajectories else name
    _check_list(credit, len(trajectories), task, "trajectories")
    return [
        _checked_row(row, len(trajectory.turns), f"{task} rollout {trajectory.rollout}")
        for row, trajectory in zip(credit, trajectories, strict=True)
    ]


def _check_list(given: object, length: int, where: str, items: str) -> None:
    if not isinstance(given, Sequence | np.ndarray):
        raise UserError(f"{where}: a list was expected, not {type(given).__name__}")
    if len(given) != length:
        raise UserError(f"{where}: credit of {len(given)} {items}, not of {length}")


def _checked_row(row: object, turns: int, where: str) -> np.ndarray:
    try:
        values = np.asarray(row, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError(f"{where}: credit that is no array of numbers") from None
    if values.ndim != 1:
        raise UserError(f"{where}: credit of shape {values.shape} for {turns} turns")
    if len(values) != turns:
        raise UserError(f"{where}: {len(values)} credits for {turns} turns")
    if not np.isfinite(values).all():
        turn = int(np.argmin(np.isfinite(values)))
        raise UserError(f"{where}: the credit of turn {turn} is {values[turn]}")
    return values
