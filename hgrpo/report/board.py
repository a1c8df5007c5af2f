"""Sends training logs to dashboards: TensorBoard event files or Weights & Biases runs.

The training jobs only write logs, and this module reads them. Therefore an unreachable dashboard
cannot stop a run, and a user can still send the logs of a finished study.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from hgrpo.errors import UserError, one_line
from hgrpo.report.run_log import RunPlan, run_log

# These columns say which step a log row belongs to. All other columns are measurements.
_PLACES = ("step", "round")


class Writer(NamedTuple):
    """Two functions that send the log of one run.

    `write(scalars, step)` sends one row. `step` counts through all rounds of the run. `close()`
    flushes the buffer.
    """

    write: Callable[[dict[str, float], int], object]
    close: Callable[[], object]


def tensorboard_run(folder: Path) -> Writer:
    """Open a TensorBoard event folder for one run; new events replace those of an earlier call."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise _missing("tensorboard") from None
    events = SummaryWriter(str(folder), purge_step=0)

    def write(scalars: dict[str, float], step: int) -> None:
        for name, value in scalars.items():
            events.add_scalar(name, value, step)
        events.flush()

    return Writer(write, events.close)


def wandb_run(project: str, study: str, plan: RunPlan, identity: str) -> Writer:
    """Open a W&B run; if a run with this identity, method and seed exists, continue that run."""
    try:
        import wandb
    except ImportError:
        raise _missing("wandb") from None
    name = f"{plan.method}-seed_{plan.seed}"
    try:
        run = wandb.init(
            project=project,
            group=study,
            name=f"{study}-{name}",
            id=hashlib.sha256(f"{identity}/{name}".encode()).hexdigest()[:16],
            resume="allow",
            reinit="create_new",
            config={"study": study, "method": plan.method, "seed": plan.seed},
        )
    except wandb.Error as error:
        raise UserError(f"--wandb: {project}: {one_line(error)}") from None
    return Writer(run.log, run.finish)


class Board:
    """Sends the log rows of a study's trained runs to dashboards, each row once.

    `plans` lists these runs.
    """

    def __init__(
        self,
        results: Path,
        plans: Sequence[RunPlan],
        tensorboard: Path | None,
        wandb: str | None,
    ):
        self._results, self._plans = results, plans
        self._tensorboard, self._wandb = tensorboard, wandb
        self._identity = (results / "config.yaml").read_text(encoding="utf-8")
        self._writers: dict[Path, list[Writer]] = {}
        self._written = {plan.home: 0 for plan in self._plans}

    def send(self) -> bool:
        """Send the new rows; return whether any run is unfinished."""
        unfinished = False
        for plan in self._plans:
            rows, done = run_log(plan)
            unfinished |= not done
            first = self._written[plan.home]
            for step, row in enumerate(rows[first:], first):
                for writer in self._of(plan):
                    writer.write(scalars(row), step)
            self._written[plan.home] = max(first, len(rows))
        return unfinished

    def close(self) -> int:
        """Close all writers; return how many rows were sent."""
        for writers in self._writers.values():
            for writer in writers:
                writer.close()
        return sum(self._written.values())

    def _of(self, plan: RunPlan) -> list[Writer]:
        """The run's writers; make them at the first call."""
        if plan.home not in self._writers:
            study = self._results.resolve().name
            made = self._writers[plan.home] = []
            if self._tensorboard is not None:
                made.append(tensorboard_run(self._tensorboard / study / plan.home))
            if self._wandb is not None:
                made.append(wandb_run(self._wandb, study, plan, self._identity))
        return self._writers[plan.home]


def scalars(row: dict) -> dict[str, float]:
    """The numbers in a log row, without its step and round."""
    return {
        name: float(value)
        for name, value in row.items()
        if name not in _PLACES and isinstance(value, int | float) and not isinstance(value, bool)
    }


def _missing(package: str) -> UserError:
    return UserError(f"--{package}: the package {package} is missing; install the extra `board`")
