"""Send training logs to dashboards: TensorBoard event files or Weights & Biases runs.

The logs are read from the files of the training jobs. An unreachable dashboard therefore cannot
stop a run, and logs can also be sent after a study has finished.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hgrpo.errors import UserError, one_line
from hgrpo.learning.scratch import rows_file, step_folders

if TYPE_CHECKING:
    from hgrpo.store.plan import Planned

# Columns that identify the step of a log row. All other columns are measurements.
_PLACES = ("step", "round")


@dataclass(frozen=True)
class RunPlan:
    """A run (a trained arm and a seed) with the jobs of its rounds."""

    method: str
    seed: int
    rounds: tuple["Planned", ...]

    @property
    def home(self) -> Path:
        """The run's folder, relative to a stage's folder."""
        return Path(self.method) / f"seed_{self.seed}"


def run_plans(jobs: Iterable["Planned"]) -> list[RunPlan]:
    """The trained runs among the jobs of a study."""
    of = defaultdict(list)
    for each in jobs:
        if each.stage == "rl_round":
            of[each.job.method, each.job.seed].append(each)
    return [RunPlan(*run, tuple(rounds)) for run, rounds in of.items()]


def run_log(plan: RunPlan) -> tuple[list[dict], bool]:
    """Rows of all steps saved so far, and whether the run is finished."""
    made = [*takewhile(lambda each: each.made, plan.rounds)]
    rows = [row for each in made for row in _read(Path(each.folder, "train_log.json"))["rows"]]
    done = len(made) == len(plan.rounds)
    begun = [] if done else [*(plan.rounds[len(made)].entry / "unfinished").glob("*/")]
    if begun:
        steps = step_folders(max(begun, key=lambda path: path.stat().st_mtime))
        with suppress(FileNotFoundError):  # the job just saved a later step or was restarted
            rows += _read(rows_file(steps[-1])) if steps else []
    return rows, done


def _read(path: Path) -> dict | list:
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise UserError(f"{path}: the file is damaged; expected JSON ({error})") from None


class Writer(NamedTuple):
    """Functions that send the log of one run.

    `write(scalars, step)` sends one row, with steps numbered over all rounds of the run. `close()`
    flushes the buffer.
    """

    write: Callable[[dict[str, float], int], object]
    close: Callable[[], object]


def tensorboard_run(folder: Path) -> Writer:
    """Open a TensorBoard event folder for one run, and discard events of earlier calls."""
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
    """Open a W&B run; resume it if a run with this identity, method and seed already exists."""
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
    """Sends the log rows of the trained runs in `plans` to dashboards, each row once."""

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
        """Close all writers; return the number of rows sent."""
        for writers in self._writers.values():
            for writer in writers:
                writer.close()
        return sum(self._written.values())

    def _of(self, plan: RunPlan) -> list[Writer]:
        if plan.home not in self._writers:
            study = self._results.resolve().name
            made = self._writers[plan.home] = []
            if self._tensorboard is not None:
                made.append(tensorboard_run(self._tensorboard / study / plan.home))
            if self._wandb is not None:
                made.append(wandb_run(self._wandb, study, plan, self._identity))
        return self._writers[plan.home]


def scalars(row: dict) -> dict[str, float]:
    """Numeric entries of a log row, except for its step and round."""
    return {
        name: float(value)
        for name, value in row.items()
        if name not in _PLACES and isinstance(value, int | float) and not isinstance(value, bool)
    }


def _missing(package: str) -> UserError:
    return UserError(f"--{package}: {package} is not installed; install the extra `board`")
