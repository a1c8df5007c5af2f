"""The protocol of text environments, the records that its methods use, and four helpers."""

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Protocol, Self, runtime_checkable

from hgrpo.errors import UserError

# The largest number of float32, in which losses are computed.
LARGEST = 3.4028234663852886e38


@dataclass(frozen=True)
class Task:
    """One entry of a panel."""

    task_id: str  # unique inside its environment, stable between machines
    path: str  # where the environment finds the task, such as a folder or an index
    content_hash: str  # SHA-256 (hex) of what defines the task
    task_type: str  # stratum used by panels and tables

    def check_content(self, digest: str, what: str) -> None:
        """Raise UserError if `digest`, the hash of the content on disk, is not `content_hash`.

        Args:
            what: names the content in the message, such as "/games/x: the game".
        """
        if digest != self.content_hash:
            raise UserError(
                f"{what} has content hash {digest[:12]}..., the task {self.task_id!r} expects "
                f"{self.content_hash[:12]}...; run the assets stage again"
            )


Panels = Mapping[str, list[Task]]  # by split


@dataclass(frozen=True)
class Observation:
    """The agent's view of a state.

    `goal` is the goal sentence. After a reset, `text` contains it too.
    """

    goal: str
    text: str


@dataclass(frozen=True)
class Step:
    """The environment's answer to one action.

    `progress` is the change of a potential that lies in [0, 1]. The change may be negative. Over an
    episode, the changes add up to the final potential minus the initial one.
    """

    observation: Observation
    env_reward: float
    progress: float
    done: bool
    success: bool
    info: dict[str, Any] = field(default_factory=dict)


class TextEnv(Protocol):
    """A picklable environment; one process can hold many.

    `step` raises RuntimeError before the first `reset` and after a step with `done`, and TypeError
    for an action that is no text. `info["admissible"]` of a step is True if the action was
    admissible. The caller counts turns and caps them; a game that caps them by itself sets
    `info["out_of_turns"]`.
    """

    def reset(self, task: Task) -> Observation: ...

    def step(self, action: str) -> Step: ...

    def admissible_commands(self) -> list[str]:
        """List the commands that the state admits; free text, such as searches, is left out."""
        ...

    def situation(self) -> tuple[str, str]:
        """Return two fingerprints: of the state known to the agent, and of the admissible commands.

        Two moments count as the same situation if both fingerprints are equal.
        """
        ...


@runtime_checkable
class Forkable(Protocol):
    """An environment that can be copied at less cost than replay."""

    def fork(self) -> TextEnv | None:
        """Deep copy of the environment; None if only replay can reach its state."""
        ...


def check_action(action: object) -> None:
    """Raise TypeError if an action is no text, such as None or bytes."""
    if not isinstance(action, str):
        raise TypeError(f"step: an action is text, not {action!r:.60}")


def finite(value: object, what: str) -> float:
    """`value` as a float; UserError, which begins with `what`, unless it is a number of float32."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    try:
        number = float(value) if is_number else math.nan
    except OverflowError:
        number = math.inf
    if not abs(number) <= LARGEST:
        text = number if is_number else repr(value)[:60]
        raise UserError(f"{what} is {text}; a finite number of float32 was expected")
    return number


def check_step(env: object, step: object, task: Task, turn: int) -> tuple[float, float]:
    """The reward and progress of a step; turns count from 0.

    Raises:
        UserError: `step` is no `Step`, a number is not finite, or a flag is neither True nor False.
    """
    if not isinstance(step, Step):
        raise wrong(env, "step", f"a Step was expected, not {type(step).__name__}")
    flags = {"done": step.done, "success": step.success, "admissible": step.info.get("admissible")}
    try:
        for name, flag in flags.items():
            if flag not in (False, True):
                raise UserError(f"{name} is {flag!r:.60}; True or False was expected")
        return finite(step.env_reward, "env_reward"), finite(step.progress, "progress")
    except UserError as error:
        raise wrong(env, "step", f"task {task.task_id} turn {turn}: {error}") from None


def wrong(env: object, method: str, mistake: str) -> UserError:
    """The error that a method of an environment made a mistake; names the class and the method."""
    return UserError(f"{type(env).__module__}.{type(env).__qualname__}.{method}: {mistake}")


def fingerprint(parts: Iterable[object]) -> str:
    """Hash `parts` to 16 hex digits; equal parts in the same order give the same digits."""
    text = "\n".join(map(str, parts))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


class PickledByReplay:
    """Base class of environments; a pickle holds the arguments, the task and the actions so far.

    Unpickling replays the actions, so a pickle needs no engine and no data of an engine. Subclasses
    set and update the attributes.
    """

    _arguments: tuple  # the constructor's arguments
    _task: Task | None  # the task in play; None before the first reset
    _played: list[str]  # the actions since the last reset

    def _twin(self) -> Self:
        """A shallow copy, with a list of actions of its own. `copy.copy` would replay."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._played = self._played[:]
        return twin

    def __reduce__(self) -> tuple:
        return _replay, (type(self), self._arguments, self._task, self._played)


def _replay(kind: type[TextEnv], arguments: tuple, task: Task | None, played: list[str]) -> TextEnv:
    env = kind(*arguments)
    if task is not None:
        env.reset(task)
        for action in played:
            env.step(action)
    return env
