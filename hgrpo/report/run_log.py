"""Reads the log rows of a run from the files that its rounds have written so far."""

import json
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
    """The rows of all steps saved so far, with the unfinished round, and whether the run is done.

    Raises:
        UserError: a log is damaged.
    """
    folder = results / "rl" / plan.home
    logs = [folder / f"round_{number}" / "train_log.json" for number in range(1, plan.rounds + 1)]
    # Stop at the first round without a log of this run. Later ones are left from an earlier run.
    written = [
        *takewhile(
            lambda path: path.exists() and made_with(path.with_name(SUMMARY), plan.settings), logs
        )
    ]
    rows = [row for path in written for row in _rows(path)]
    done = len(written) == plan.rounds
    scratch = results / "scratch" / plan.home / f"round_{len(written) + 1}"
    begun = [path for path in scratch.glob("*") if path.is_dir()]
    if begun and not done:
        kept = step_folders(max(begun, key=lambda path: path.stat().st_mtime))
        rows += _rows(rows_file(kept[-1]), finished=False) if kept else []
    return rows, done


def _rows(path: Path, finished: bool = True) -> list[dict]:
    """The rows of a log; empty if the file is missing.

    The log of a finished round is a mapping with the key `rows`. The log of an unfinished round is
    the list of rows itself.
    """
    try:
        rows = json.loads(path.read_bytes())
    except FileNotFoundError:
        # The training job has just removed the file: it saved a later step, or started again.
        return []
    except ValueError as error:
        raise UserError(f"{path}: not JSON ({error}); the file is damaged") from None
    if finished:
        if not isinstance(rows, dict) or "rows" not in rows:
            raise UserError(f"{path}: not a train log, which has the key 'rows'")
        rows = rows["rows"]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(f"{path}: not the rows of a train log")
    return rows
