"""Reads the log rows of a run from the files that its rounds have written so far."""

import json
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from hgrpo.config.canonical import SUMMARY, made_with
from hgrpo.errors import UserError
from hgrpo.learning.scratch import rows_file, step_folders


@dataclass(frozen=True)
class RunPlan:
    """A run (a trained arm and a seed) as the study plans it.

    Attributes:
        settings: digest of the settings of a round. Results with other settings are those of an
            earlier run. "": any settings.
    """

    method: str
    seed: int
    rounds: int
    settings: str = ""

    @property
    def home(self) -> Path:
        """The run's folder, relative to a stage's folder."""
        return Path(self.method) / f"seed_{self.seed}"


def run_log(results: Path, plan: RunPlan) -> tuple[list[dict], bool]:
    """The rows of all steps saved so far, also of an unfinished round; whether the run is done."""
    folder = results / "rl" / plan.home
    logs = [folder / f"round_{number}" / "train_log.json" for number in range(1, plan.rounds + 1)]
    # Stop at the first round without a log of this run. Later ones are left from an earlier run.
    written = [
        *takewhile(
            lambda path: path.exists() and made_with(path.with_name(SUMMARY), plan.settings), logs
        )
    ]
    rows = [row for path in written for row in _read(path)["rows"]]
    done = len(written) == plan.rounds
    scratch = results / "scratch" / plan.home / f"round_{len(written) + 1}"
    begun = [path for path in scratch.glob("*") if path.is_dir()]
    if begun and not done:
        kept = step_folders(max(begun, key=lambda path: path.stat().st_mtime))
        with suppress(FileNotFoundError):  # the job has just saved a later step, or started again
            rows += _read(rows_file(kept[-1])) if kept else []
    return rows, done


def _read(path: Path) -> dict | list:
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise UserError(f"{path}: not JSON ({error}); the file is damaged") from None
