"""Reads the progress of every run of a study from the files its rounds have written so far."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from numbers import Real
from pathlib import Path

import pandas as pd

from hgrpo import parquet
from hgrpo.config.canonical import SUMMARY, made_with
from hgrpo.errors import UserError, one_line
from hgrpo.evaluation.outcomes import GREEDY, TEST
from hgrpo.learning.scratch import rows_file, step_folders

# Only these columns of a log row are checked. If one exists, it must hold a number.
_SHOWN = ("mean_reward", "success_rate", "observed_kl", "dead_groups", "n_groups")


@dataclass(frozen=True)
class RunPlan:
    """A run (an arm and a seed) as the study plans it: `rounds` rounds of `steps` steps.

    An untrained arm has no rounds; only its policy is evaluated.

    Attributes:
        settings, evaluation: digests of the settings of a round and of an evaluation. Results with
            other settings are those of an earlier run. "": any settings.
    """

    method: str
    seed: int
    rounds: int
    steps: int
    settings: str = field(default="", kw_only=True)
    evaluation: str = field(default="", kw_only=True)

    @property
    def home(self) -> Path:
        """The run's folder, relative to a stage's folder."""
        return Path(self.method) / f"seed_{self.seed}"


@dataclass(frozen=True)
class RunLog(RunPlan):
    """What a run has logged so far.

    Attributes:
        rows: the rows of all steps saved so far, including those of the unfinished round.
        finished: number of finished rounds.
        step: number of saved steps of the unfinished round; None if that round has not begun.
    """

    rows: list[dict]
    finished: int
    step: int | None

    @property
    def done(self) -> bool:
        return self.finished == self.rounds

    @property
    def row(self) -> dict:
        """The newest log row; empty if there is none."""
        return self.rows[-1] if self.rows else {}


@dataclass(frozen=True)
class RunStatus(RunLog):
    """The progress of a run.

    Attributes:
        test_success: greedy test success after the last evaluated round; None if there is none.
    """

    test_success: float | None


def study_status(results: Path, plans: Iterable[RunPlan]) -> list[RunStatus]:
    """The progress of runs of a study; `results` is the study's folder.

    UserError if a log or an episodes file is damaged.
    """
    logs = [run_log(results, plan) for plan in plans]
    return [RunStatus(**vars(log), test_success=_test_success(results, log)) for log in logs]


def run_log(results: Path, plan: RunPlan) -> RunLog:
    """Read what a run has logged; UserError if a log is damaged or a row lacks `elapsed_s`."""
    folder = results / "rl" / plan.home
    logs = [folder / f"round_{number}" / "train_log.json" for number in range(1, plan.rounds + 1)]
    # Stop at the first round without a log of this run. Later ones are left from an earlier run.
    written = [
        *takewhile(
            lambda path: path.exists() and made_with(path.with_name(SUMMARY), plan.settings), logs
        )
    ]
    rows = [row for path in written for row in _rows(path)]
    step = None
    scratch = results / "scratch" / plan.home / f"round_{len(written) + 1}"
    begun = [path for path in scratch.glob("*") if path.is_dir()]
    if begun and len(written) < plan.rounds:
        kept = step_folders(max(begun, key=lambda path: path.stat().st_mtime))
        own = _rows(rows_file(kept[-1]), finished=False) if kept else []
        step, rows = len(own), rows + own
    return RunLog(**vars(plan), rows=rows, finished=len(written), step=step)


def _rows(path: Path, finished: bool = True) -> list[dict]:
    """The rows of a log, after a check of the columns to show; empty if the file is missing.

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
    for number, row in enumerate(rows, 1):
        for key in _SHOWN:
            if not isinstance(row.get(key), Real | None):
                raise UserError(
                    f"{path}: row {number}: {key}: a number was expected, not {row[key]!r}"
                )
    return rows


def _test_success(results: Path, log: RunLog) -> float | None:
    folders = [results / "eval" / log.home / f"round_{n}" for n in range(log.finished + 1)]
    made = [each for each in folders if made_with(each / SUMMARY, log.evaluation)]
    evaluated = [path for each in made if (path := each / "episodes.parquet").exists()]
    if not evaluated:
        return None
    path = evaluated[-1]
    try:
        episodes = pd.read_parquet(
            path, columns=["panel", "temperature", "success"], **parquet.READ
        )
        chosen = (episodes["panel"] == TEST) & (episodes["temperature"] == GREEDY)
        return float(episodes.loc[chosen, "success"].mean())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UserError(f"{path}: damaged, or not an episodes file ({one_line(error)})") from None
