"""Sends training logs to dashboards: TensorBoard event files or Weights & Biases runs.

Rounds only write logs, and this module reads the logs. Therefore an unreachable dashboard cannot
stop a run, and the logs of a finished study can still be sent.
"""

import hashlib
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.report.run_status import RunPlan, run_log, trained_runs

# These columns say which step a row belongs to. All others are measurements.
_PLACES = ("step", "round")


class TensorBoardRun:
    """Writes a TensorBoard event folder, and replaces the events of an earlier call."""

    def __init__(self, folder: Path):
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise _missing("tensorboard") from None
        self._writer = SummaryWriter(str(folder), purge_step=0)

    def write(self, step: int, scalars: dict[str, float]) -> None:
        """Add the scalars of a step; steps are counted on from round to round."""
        for name, value in scalars.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        """Write out what is still buffered."""
        self._writer.close()


class WandbRun:
    """Writes a W&B run; sending the same run of the same study again continues it."""

    def __init__(self, project: str, study: str, plan: RunPlan, identity: str):
        try:
            import wandb
        except ImportError:
            raise _missing("wandb") from None
        name = f"{plan.method}-seed_{plan.seed}"
        try:
            self._run = wandb.init(
                project=project,
                group=study,
                name=f"{study}-{name}",
                id=hashlib.sha256(f"{identity}/{name}".encode()).hexdigest()[:16],
                resume="allow",
                reinit="create_new",
                config={"study": study, "method": plan.method, "seed": plan.seed},
            )
        except wandb.Error as error:
            raise UserError(f"--wandb: {project}: {' '.join(str(error).split())}") from None

    def write(self, step: int, scalars: dict[str, float]) -> None:
        """Add the scalars of a step, as `TensorBoardRun.write` does."""
        self._run.log(scalars, step=step)

    def close(self) -> None:
        """Send what is still buffered, as `TensorBoardRun.close` does."""
        self._run.finish()


class Board:
    """Sends each log row of a study's runs to the dashboards once."""

    def __init__(self, results: Path, tensorboard: Path | None, wandb: str | None):
        self._results = results
        self._tensorboard, self._wandb = tensorboard, wandb
        self._plans = trained_runs(results)
        self._identity = (results / "config.yaml").read_text()
        self._writers: dict[Path, list[TensorBoardRun | WandbRun]] = {}
        self._written = {plan.home: 0 for plan in self._plans}

    def send(self) -> bool:
        """Send the new rows; return whether any run is unfinished."""
        unfinished = False
        for plan in self._plans:
            log = run_log(self._results, plan)
            unfinished |= log.finished < plan.rounds
            first = self._written[plan.home]
            for step, row in enumerate(log.rows[first:], first):
                for writer in self._of(plan):
                    writer.write(step, scalars(row))
            self._written[plan.home] = max(first, len(log.rows))
        return unfinished

    def close(self) -> int:
        """Close all writers; return how many rows were sent."""
        for writers in self._writers.values():
            for writer in writers:
                writer.close()
        return sum(self._written.values())

    def _of(self, plan: RunPlan) -> list[TensorBoardRun | WandbRun]:
        """The run's writers, which are made when its first row arrives."""
        if plan.home not in self._writers:
            study = self._results.resolve().name
            made = self._writers[plan.home] = []
            if self._tensorboard is not None:
                made.append(TensorBoardRun(self._tensorboard / study / plan.home))
            if self._wandb is not None:
                made.append(WandbRun(self._wandb, study, plan, self._identity))
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
