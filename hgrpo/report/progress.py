"""Where every run of a study stands, read from what its rounds have written so far."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd
import yaml

from hgrpo.errors import UserError
from hgrpo.evaluation.outcomes import GREEDY, TEST


@dataclass(frozen=True)
class RunProgress:
    """One arm and seed.

    Attributes:
        rounds: of the whole run. finished: of them.
        steps: of a round. step: finished steps of the round in hand; None if it has not begun.
        row: the newest log row; empty before the first.
        heard_s: seconds since that row was written; None before the first.
        seconds: mean duration of the steps so far; None before the first.
        test_success: greedy, after the last round that was evaluated; None before.
    """

    method: str
    seed: int
    rounds: int
    finished: int
    steps: int
    step: int | None
    row: dict = field(default_factory=dict)
    heard_s: float | None = None
    seconds: float | None = None
    test_success: float | None = None

    @property
    def done(self) -> bool:
        """Whether every round is finished."""
        return self.finished == self.rounds

    @property
    def left_s(self) -> float | None:
        """Seconds that the steps to come will take; None where nothing is known of them."""
        if self.done:
            return 0.0
        left = (self.rounds - self.finished) * self.steps - (self.step or 0)
        return None if self.seconds is None else left * self.seconds


@dataclass(frozen=True)
class RunPlan:
    """What one arm and seed is to do: so many rounds of so many steps."""

    method: str
    seed: int
    rounds: int
    steps: int

    @property
    def home(self) -> Path:
        """The run's folder, below those of the stages."""
        return Path(self.method) / f"seed_{self.seed}"


@dataclass(frozen=True)
class RunLog:
    """What one run has logged.

    Attributes:
        rows: of all steps so far, the unfinished round's included.
        finished: rounds.
        step: finished steps of the round in hand; None if it has not begun.
        newest: the file that was written last; None before the first step.
    """

    rows: list[dict]
    finished: int
    step: int | None
    newest: Path | None


def trained_runs(results: Path) -> list[RunPlan]:
    """Every trained run of a study, the reference arm first.

    Args:
        results: the study's folder, with its config.yaml.

    Raises:
        UserError: that file is missing or is no study's.
    """
    path = results / "config.yaml"
    try:
        config = yaml.safe_load(path.read_text())
        arms = [name for name, arm in config["methods"].items() if arm["train"]]
        arms.sort(key=lambda name: name != config["reference"])
        rounds, seeds = config["rounds"], config["seeds"]
        return [
            RunPlan(name, seed, rounds, _steps(config, name)) for name in arms for seed in seeds
        ]
    except FileNotFoundError:
        raise UserError(
            f"{path}: no such file; results/<study> was expected, whose first job writes it"
        ) from None
    except (yaml.YAMLError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path}: not the configuration of a study") from None


def study_progress(results: Path) -> list[RunProgress]:
    """Where every trained run of a study stands; arguments and errors as for `trained_runs`."""
    return _with_durations([_progress(results, plan) for plan in trained_runs(results)])


def _steps(config: dict, method: str) -> int:
    own = config["methods"][method].get("training", {})
    return own.get("steps_per_round", config["training"]["steps_per_round"])


def run_log(results: Path, plan: RunPlan) -> RunLog:
    """Everything a run has logged: finished rounds, and the steps of the one in hand."""
    folder = results / "rl" / plan.home
    logs = [folder / f"round_{number}" / "train_log.json" for number in range(1, plan.rounds + 1)]
    written = [path for path in logs if path.exists()]
    rows = [row for path in written for row in json.loads(path.read_text())["rows"]]
    newest = written[-1] if written else None
    step = None
    if len(written) < plan.rounds:
        current = _current(results / "scratch" / plan.home, len(written) + 1)
        if current is not None:
            own = _rows(current)
            step, rows, newest = len(own), rows + own, current if own else newest
    return RunLog(rows, len(written), step, newest)


def _progress(results: Path, plan: RunPlan) -> RunProgress:
    log = run_log(results, plan)
    heard = time.time() - log.newest.stat().st_mtime if log.newest else None
    mean = sum(row["elapsed_s"] for row in log.rows) / len(log.rows) if log.rows else None
    return RunProgress(
        plan.method,
        plan.seed,
        plan.rounds,
        log.finished,
        plan.steps,
        log.step,
        log.rows[-1] if log.rows else {},
        heard,
        mean,
        _test_success(results / "eval" / plan.home),
    )


def _current(scratch: Path, number: int) -> Path | None:
    """The newest step of an unfinished round, or its folder if it has none yet."""
    begun = [path for path in scratch.glob(f"round_{number}-*/*") if path.is_dir()]
    if not begun:
        return None
    latest = max(begun, key=lambda path: path.stat().st_mtime)
    return max(latest.glob("step_*/rows.json"), default=latest)


def _rows(current: Path) -> list[dict]:
    try:
        return [] if current.is_dir() else json.loads(current.read_text())
    except FileNotFoundError:
        # The round has gone on since: its steps are elsewhere by now.
        return []


def _test_success(folder: Path) -> float | None:
    evaluated = sorted(
        folder.glob("round_*/episodes.parquet"), key=lambda path: int(path.parent.name[6:])
    )
    if not evaluated:
        return None
    episodes = pd.read_parquet(evaluated[-1], columns=["panel", "temperature", "success"])
    chosen = (episodes["panel"] == TEST) & (episodes["temperature"] == GREEDY)
    return float(episodes.loc[chosen, "success"].mean())


def _with_durations(runs: Sequence[RunProgress]) -> list[RunProgress]:
    """Give runs that have not begun the mean duration of the others' steps."""
    known = [run.seconds for run in runs if run.seconds is not None]
    mean = sum(known) / len(known) if known else None
    return [run if run.seconds is not None else replace(run, seconds=mean) for run in runs]
