"""The protocol of text environments, the records it exchanges with the agent, and two helpers."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from hgrpo.errors import UserError


@dataclass(frozen=True)
class Task:
    """One entry of a panel."""

    task_id: str  # unique inside its environment, stable between machines
    path: str  # where the environment finds the task, such as a folder or an index
    content_hash: str  # SHA-256 (hex) of what defines the task
    task_type: str  # stratum used by panels and tables

    def check_content(self, found: str, what: str) -> None:
        """Raise UserError unless `found`, the hash of the content on disk, is this task's.

        Args:
            what: path and kind of the content, such as "/games/x: the game".
        """
        if found != self.content_hash:
            raise UserError(
                f"{what} has content hash {found[:12]}..., the task {self.task_id!r} expects "
                f"{self.content_hash[:12]}...; run the assets stage again"
            )


@dataclass(frozen=True)
class Observation:
    """What the agent sees. `goal` is the goal sentence; a reset's `text` contains it too."""

    goal: str
    text: str


@dataclass(frozen=True)
class Step:
    """The environment's answer to one action.

    `progress` is the change of a potential in [0, 1]. It may be negative. Over an episode it sums
    to the final minus the initial potential.
    """

    observation: Observation
    env_reward: float
    progress: float
    done: bool
    success: bool
    info: dict[str, Any] = field(default_factory=dict)


class TextEnv(Protocol):
    """A picklable environment; many can live in one process.

    `step` before `reset` or after `done` raises RuntimeError. `info["admissible"]` of a step
    says whether the action was one of the admissible commands. There is no turn cap here: the
    caller counts turns.
    """

    def reset(self, task: Task) -> Observation: ...

    def step(self, action: str) -> Step: ...

    def admissible_commands(self) -> list[str]:
        """Commands that the current state accepts, in the environment's order."""
        ...

    def situation(self) -> tuple[str, str]:
        """Two fingerprints: of what the agent can know of the state, and of the commands it admits.

        Two moments with equal fingerprints count as the same state.
        """
        ...


def fingerprint(parts: Iterable[object]) -> str:
    """16 hex digits; equal parts in equal order give equal digits."""
    text = "\n".join(map(str, parts))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


class PickledByReplay:
    """Base class of environments; pickles the arguments, the task and the actions so far.

    Neither an engine nor its data is pickled. A subclass sets the attributes.
    """

    _arguments: tuple  # of the constructor
    _task: Task | None  # in play; None before the first reset
    _played: list[str]  # actions since the reset

    def __reduce__(self) -> tuple:
        return _replay, (type(self), self._arguments, self._task, self._played)


def _replay(kind: type[TextEnv], arguments: tuple, task: Task | None, played: list[str]) -> TextEnv:
    env = kind(*arguments)
    if task is not None:
        env.reset(task)
        for action in played:
            env.step(action)
    return env
