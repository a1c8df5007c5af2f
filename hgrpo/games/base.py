"""The protocol of text environments, with its record types and helpers."""

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Protocol, Self, runtime_checkable

from hgrpo.errors import UserError

# The largest finite float32 number; losses are float32.
LARGEST = 3.4028234663852886e38


@dataclass(frozen=True)
class Task:
    """One entry of a panel, i.e. one game that can be played."""

    task_id: str  # unique in its environment, stable across machines
    path: str  # location of the task in its environment, such as a folder or an index
    content_hash: str  # SHA-256 (hex) of the task's content
    task_type: str  # category by which panels are stratified and tables are grouped

    def check_content(self, digest: str, what: str) -> None:
        """Raise UserError if the hash `digest` of the content on disk differs from `content_hash`.

        Args:
            what: description of the content in the message, such as "/games/x: the game".
        """
        if digest != self.content_hash:
            raise UserError(
                f"{what} has content hash {digest[:12]}..., but task {self.task_id!r} requires "
                f"{self.content_hash[:12]}...; run the assets stage again"
            )


Panels = Mapping[str, list[Task]]  # split -> tasks


@dataclass(frozen=True)
class Observation:
    """The text that an agent observes in a state.

    `goal` is the goal sentence. After a reset, `text` also contains it.
    """

    goal: str
    text: str


@dataclass(frozen=True)
class Step:
    """The result of one action.

    `progress` is the change in a potential in [0, 1], and may be negative. Summed over an episode,
    it equals the final potential minus the initial one.
    """

    observation: Observation
    env_reward: float
    progress: float
    done: bool
    success: bool
    info: dict[str, Any] = field(default_factory=dict)


class TextEnv(Protocol):
    """A picklable environment. One process can hold many instances.

    `step` raises RuntimeError before the first `reset` or after a step with `done`. It raises
    TypeError if the action is not a string. `info["admissible"]` is True for an admissible action.
    The caller enforces the turn cap. A game with its own cap sets `info["out_of_turns"]`.
    """

    def reset(self, task: Task) -> Observation: ...

    def step(self, action: str) -> Step: ...

    def admissible_commands(self) -> list[str]:
        """List the admissible commands, excluding free text such as searches."""
        ...

    def situation(self) -> tuple[str, str]:
        """Return two fingerprints: of the state known to the agent, and of the admissible commands.

        Two situations are considered the same if both fingerprints are equal.
        """
        ...


@runtime_checkable
class Forkable(Protocol):
    """An environment that can be copied without replaying all actions."""

    def fork(self) -> TextEnv | None:
        """Deep copy of the environment, or None if its state can only be restored by replay."""
        ...


def check_action(action: object) -> None:
    """Raise TypeError if an action is not a string."""
    if not isinstance(action, str):
        raise TypeError(f"step: an action must be a string, not {action!r:.60}")


def finite(value: object, what: str) -> float:
    """Return `value` as a float; raise UserError (naming `what`) if it is not a finite float32."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    try:
        number = float(value) if is_number else math.nan
    except OverflowError:
        number = math.inf
    if not abs(number) <= LARGEST:
        text = number if is_number else repr(value)[:60]
        raise UserError(f"{what} is {text}; it must be a finite float32 number")
    return number


def check_step(env: object, step: object, task: Task, turn: int) -> tuple[float, float]:
    """Check a step, and return its reward and progress. `turn` is counted from 0.

    Raises:
        UserError: `step` is not a `Step`, a number in it is not finite, or a flag is not a bool.
    """
    if not isinstance(step, Step):
        raise wrong(env, "step", f"expected a Step, not {type(step).__name__}")
    flags = {"done": step.done, "success": step.success, "admissible": step.info.get("admissible")}
    try:
        for name, flag in flags.items():
            if flag not in (False, True):
                raise UserError(f"{name} is {flag!r:.60}; it must be True or False")
        return finite(step.env_reward, "env_reward"), finite(step.progress, "progress")
    except UserError as error:
        raise wrong(env, "step", f"task {task.task_id} turn {turn}: {error}") from None


def wrong(env: object, method: str, mistake: str) -> UserError:
    """Create a UserError that describes a mistake in a method of an environment."""
    return UserError(f"{type(env).__module__}.{type(env).__qualname__}.{method}: {mistake}")


def fingerprint(parts: Iterable[object]) -> str:
    """Hash `parts` in order (16 hex digits)."""
    text = "\n".join(map(str, parts))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


class PickledByReplay:
    """Base class of environments that are pickled without the state of their engine.

    A pickle contains the constructor's arguments, the task and the actions so far, and unpickling
    replays these actions. Subclasses must keep the attributes below up to date.
    """

    _arguments: tuple  # the constructor's arguments
    _task: Task | None  # the task in play; None before the first reset
    _played: list[str]  # the actions since the last reset

    def _twin(self) -> Self:
        """Shallow copy with a separate list of actions; `copy.copy` would replay the actions."""
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
