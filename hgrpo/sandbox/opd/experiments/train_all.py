"""Trains the variants of an experiment, each stretch of steps that several share only once."""

import copy
from collections.abc import Callable, Sequence

from hgrpo.sandbox.opd.settings import OpdSettings
from hgrpo.sandbox.opd.train import Trainer
from hgrpo.sandbox.trainer import Row


def train_all(
    runs: Sequence[OpdSettings], advance: Callable[[int], object] = lambda steps: None
) -> list[list[Row]]:
    """The log of every run, in order; `advance` is told how many steps are done.

    A run that begins like another one goes on from the state in which that one left its common
    phases. Its log is what it would have been alone.
    """
    forks = {_fork(run, phase.start) for run in runs for phase in run.phases[1:]}
    kept: dict[tuple, dict] = {}
    logs = []
    for run in runs:
        trainer = Trainer(run)
        for phase in reversed(run.phases[1:]):
            if _fork(run, phase.start) in kept:
                trainer.load_state(copy.deepcopy(kept[_fork(run, phase.start)]))
                break
        advance(trainer.step)
        while trainer.step < run.num_steps:
            here = _fork(run, trainer.step)
            if here in forks and here not in kept:
                kept[here] = copy.deepcopy(trainer.state())
            trainer.take_step()
            advance(1)
        logs.append(trainer.finish())
    return logs


def _fork(run: OpdSettings, step: int) -> tuple[int, str]:
    """What decides a run's state and log before `step`."""
    past = tuple(phase for phase in run.phases if phase.start < step)
    # The length of the run and its later phases have not mattered yet.
    same = run.model_dump(exclude={"num_steps", "phases", "allow_degenerate"})
    return step, repr((same, past))
