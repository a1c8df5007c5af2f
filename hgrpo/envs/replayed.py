"""Pickling an environment by replaying its episode."""

from hgrpo.envs.base import Task, TextEnv


class PickledByReplay:
    """Base class of environments; pickles only the arguments, the task and the actions so far.

    Neither an engine nor its data is pickled. A subclass sets the attributes.

    Attributes:
        _arguments: the constructor's arguments.
        _task: the task in play; None before the first reset.
        _played: actions since the reset.
    """

    _arguments: tuple
    _task: Task | None
    _played: list[str]

    def __reduce__(self) -> tuple:
        return _replay, (type(self), self._arguments, self._task, self._played)


def _replay(kind: type[TextEnv], arguments: tuple, task: Task | None, played: list[str]) -> TextEnv:
    env = kind(*arguments)
    if task is not None:
        env.reset(task)
        for action in played:
            env.step(action)
    return env
