"""What a credit assigner is, and what it may use."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hgrpo.agent.trajectory import Trajectory
from hgrpo.envs.base import TextEnv

if TYPE_CHECKING:
    from hgrpo.agent.conversation import Conversation
    from hgrpo.policy.policy import Policy
    from hgrpo.rollout.engine import RolloutEngine


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
        make_env: makes another environment over the study's assets.
        turn_cap: turns an episode may have.
        policy: the policy as it plays, for hidden states.
        engine, conversation: for further rollouts between two steps.
        cache: folder shared by all jobs of a study.
        fitted: folder of what the fit stage of the previous round wrote.
        judge_url: base URL of the judge that the workflow started.
    """

    environment: str = ""
    make_env: Callable[[], TextEnv] | None = None
    turn_cap: int = 0
    policy: "Policy | None" = None
    engine: "RolloutEngine | None" = None
    conversation: "Conversation | None" = None
    cache: Path | None = None
    fitted: Path | None = None
    judge_url: str | None = None


class CreditAssigner(Protocol):
    """Says which turn earned the return.

    An assigner may have a method `report() -> dict[str, float]`: numbers for the log, of the
    groups since the last report.
    """

    def assign(self, group: Group) -> list[np.ndarray]:
        """Credit of every turn: K float64 arrays, the k-th as long as trajectory k has turns."""
        ...
