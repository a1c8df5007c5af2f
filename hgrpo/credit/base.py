"""What a credit assigner is, and what it may use."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hgrpo.agent.trajectory import Trajectory

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
        environment: family of the environment, such as "alfworld".
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
    """Credit of several groups; an assigner that would rather see them together may."""
    together = getattr(assigner, "assign_many", None)
    return together(groups) if together else [assigner.assign(group) for group in groups]
