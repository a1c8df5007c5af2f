"""Reads the log rows of a run from the files that its rounds have written so far."""

import json
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.errors import UserError
from hgrpo.learning.scratch import rows_file, step_folders

if TYPE_CHECKING:
    from hgrpo.store.plan import Planned


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
    """The rows of all steps saved so far, also of an unfinished round; whether the run is done."""
    made = [*takewhile(lambda each: each.made, plan.rounds)]
    rows = [row for each in made for row in _read(Path(each.folder, "train_log.json"))["rows"]]
    done = len(made) == len(plan.rounds)
    begun = [] if done else [*(plan.rounds[len(made)].entry / "unfinished").glob("*/")]
    if begun:
        steps = step_folders(max(begun, key=lambda path: path.stat().st_mtime))
        with suppress(FileNotFoundError):  # the job has just saved a later step, or started again
            rows += _read(rows_file(steps[-1])) if steps else []
    return rows, done


def _read(path: Path) -> dict | list:
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise UserError(f"{path}: not JSON ({error}); the file is damaged") from None
