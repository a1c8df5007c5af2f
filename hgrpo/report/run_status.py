"""Reads the progress of every run of a study from the files its rounds have written so far."""

import json
import time
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path

import pandas as pd
import yaml

from hgrpo import parquet
from hgrpo.errors import UserError, one_line
from hgrpo.evaluation.outcomes import GREEDY, TEST
from hgrpo.learning.scratch import rows_file, step_folders

# This module checks only these columns of a log row. They hold numbers; only `_ELAPSED` must exist.
_ELAPSED = "elapsed_s"
_SHOWN = ("mean_reward", "success_rate", "observed_kl", "dead_groups", "n_groups")


@dataclass(frozen=True)
class RunPlan:
    """A run (an arm and a seed) as the study plans it: `rounds` rounds of `steps` steps."""

    method: str
    seed: int
    rounds: int
    steps: int

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
        newest: the log file written last; None if no step has been saved.
    """

    rows: list[dict]
    finished: int
    step: int | None
    newest: Path | None

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
        heard_s: seconds since the newest log file was written; None if there is none.
        seconds: mean seconds per step, of this run or else of the study's other runs; None if no
            step of the study has been timed.
        test_success: greedy test success after the last evaluated round; None if there is none.
    """

    heard_s: float | None
    seconds: float | None
    test_success: float | None

    @property
    def left_s(self) -> float | None:
        """Estimate of the seconds that the remaining steps take; None if no step has been timed."""
        if self.done:
            return 0.0
        left = (self.rounds - self.finished) * self.steps - (self.step or 0)
        return None if self.seconds is None else left * self.seconds


def trained_runs(results: Path) -> list[RunPlan]:
    """Every trained run of a study, the reference arm first; `results` is the study's folder.

    UserError if config.yaml is missing, is not a study, or holds an invalid number.
    """
    path = results / "config.yaml"
    try:
        config = yaml.safe_load(path.read_text())
        arms = [name for name, arm in config["methods"].items() if arm["train"]]
        arms.sort(key=lambda name: name != config["reference"])
        rounds = _whole(config["rounds"], 1, f"{path}: rounds")
        seeds = [_whole(seed, 0, f"{path}: seeds") for seed in config["seeds"]]
        steps = {name: _steps(config, name, path) for name in arms}
        return [RunPlan(name, seed, rounds, steps[name]) for name in arms for seed in seeds]
    except FileNotFoundError:
        raise UserError(
            f"{path}: no such file; results/<study> was expected, whose first job writes it"
        ) from None
    except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path}: not the configuration of a study") from None


def study_status(results: Path) -> list[RunStatus]:
    """The progress of every trained run of a study; `results` is the study's folder.

    A run without a timed step gets the mean of the other runs' seconds per step. UserError if the
    study's config.yaml is missing, or config.yaml, a log or an episodes file is damaged.
    """
    runs = [_status(results, plan) for plan in trained_runs(results)]
    known = [run.seconds for run in runs if run.seconds is not None]
    mean = sum(known) / len(known) if known else None
    return [run if run.seconds is not None else replace(run, seconds=mean) for run in runs]


def _steps(config: dict, method: str, path: Path) -> int:
    key = "training.steps_per_round"
    steps = config["training"]["steps_per_round"]
    own = config["methods"][method].get("training", {})
    if "steps_per_round" in own:
        key, steps = f"methods.{method}.{key}", own["steps_per_round"]
    return _whole(steps, 1, f"{path}: {key}")


def _whole(value: object, least: int, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return value
    raise UserError(f"{where}: a whole number from {least} was expected, not {value!r}")


def run_log(results: Path, plan: RunPlan) -> RunLog:
    """Read what a run has logged; UserError if a log is damaged or a row lacks `elapsed_s`."""
    folder = results / "rl" / plan.home
    logs = [folder / f"round_{number}" / "train_log.json" for number in range(1, plan.rounds + 1)]
    written = [path for path in logs if path.exists()]
    rows = [row for path in written for row in _rows(path)]
    newest, step = written[-1] if written else None, None
    scratch = results / "scratch" / plan.home / f"round_{len(written) + 1}"
    begun = [path for path in scratch.glob("*") if path.is_dir()]
    if begun and len(written) < plan.rounds:
        kept = step_folders(max(begun, key=lambda path: path.stat().st_mtime))
        own = _rows(rows_file(kept[-1]), finished=False) if kept else []
        step, rows, newest = len(own), rows + own, rows_file(kept[-1]) if own else newest
    return RunLog(**vars(plan), rows=rows, finished=len(written), step=step, newest=newest)


def _status(results: Path, plan: RunPlan) -> RunStatus:
    log = run_log(results, plan)
    heard = time.time() - log.newest.stat().st_mtime if log.newest else None
    mean = sum(row[_ELAPSED] for row in log.rows) / len(log.rows) if log.rows else None
    success = _test_success(results / "eval" / plan.home)
    return RunStatus(**vars(log), heard_s=heard, seconds=mean, test_success=success)


def _rows(path: Path, finished: bool = True) -> list[dict]:
    """The rows of a log, after a check of the columns to show; empty if the file is missing.

    The log of a finished round is a mapping with the key `rows`. The log of an unfinished round is
    the list of rows itself.
    """
    try:
        rows = json.loads(path.read_text())
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
        if row.get(_ELAPSED) is None:
            raise UserError(f"{path}: row {number}: {_ELAPSED}: required, but not given")
        for key in (_ELAPSED, *_SHOWN):
            if not isinstance(row.get(key), Real | None):
                raise UserError(
                    f"{path}: row {number}: {key}: a number was expected, not {row[key]!r}"
                )
    return rows


def _test_success(folder: Path) -> float | None:
    evaluated = sorted(
        folder.glob("round_*/episodes.parquet"), key=lambda path: int(path.parent.name[6:])
    )
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
