"""Seconds and bytes of past jobs, from Snakemake's benchmark files and the results."""

import functools
import json
import os
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hgrpo.config.read import read_yaml
from hgrpo.errors import UserError
from hgrpo.stages.order import STAGES, belongs_to_an_arm, load, runs_a_model
from hgrpo.stages.timing import TIMING
from hgrpo.workflow.exchange.imports import imported
from hgrpo.workflow.planning.jobs import SHARED
from hgrpo.workflow.reuse import was_taken

# Sources of an estimate: the same arm of this study, other arms of this study or jobs that a
# colleague ran for it, other studies.
OWN, OTHER_ARMS, OTHER_STUDIES = range(3)

# At most this many folders are measured per stage and arm. More would hardly change the mean.
_WEIGHED = 20

_ByArm = Mapping[str, list[float]]
_Measure = Callable[[Path, str], _ByArm]


@dataclass(frozen=True)
class Player:
    """The language model that plays in a study, and the engine that runs it.

    Attributes:
        model: name of the model.
        engine: kind of the rollout engine.
    """

    model: str
    engine: str


@dataclass(frozen=True)
class Estimate:
    """A mean over past jobs.

    Attributes:
        value: seconds, or bytes.
        source: OWN, OTHER_ARMS or OTHER_STUDIES.
    """

    value: float
    source: int = OWN


class PastJobs:
    """Means over past jobs of a stage and arm, from the most similar jobs that exist.

    In order of preference: the same arm of this study, other arms of this study, the same arm of
    other studies, any arm of other studies. For stages that run a language model, another study
    counts only if it has the same player. Seconds of imported jobs say how fast another machine is,
    so they count only where no job of the stage has run here for this study.

    Args:
        results: folder of all studies.
        study: name of this study.
        player: this study's player.
    """

    def __init__(self, results: Path, study: str, player: Player):
        self._results, self._study, self._player = results, study, player
        self._player_of = functools.cache(player_of)
        self._own = functools.cache(lambda measure, stage: measure(results / study, stage))
        self._others = functools.cache(self._read_others)
        self._imported = functools.cache(lambda: imported(results / study))

    def seconds(self, stage: str, arm: str) -> Estimate | None:
        """Seconds of a job; None if no past job of the stage counts."""
        here = self._own(self._seconds_here, stage)
        if here:
            return _mean(here, arm, OWN, OTHER_ARMS)
        found = self._nearest(seconds_of_jobs, stage, arm)
        return replace(found, source=max(found.source, OTHER_ARMS)) if found else None

    def bytes(self, stage: str, arm: str) -> Estimate | None:
        """Bytes that a job writes; None if no past job of the stage counts."""
        return self._nearest(bytes_of_jobs, stage, arm)

    def _seconds_here(self, folder: Path, stage: str) -> _ByArm:
        return seconds_of_jobs(folder, stage, lambda job: not self._imported()(job))

    def _nearest(self, measure: _Measure, stage: str, arm: str) -> Estimate | None:
        own = self._own(measure, stage)
        if own:
            return _mean(own, arm, OWN, OTHER_ARMS)
        others = self._others(measure, stage)
        return _mean(others, arm, OTHER_STUDIES, OTHER_STUDIES) if others else None

    def _read_others(self, measure: _Measure, stage: str) -> _ByArm:
        """arm -> values of the arm's past jobs in all other studies that count."""
        found = defaultdict(list)
        for path in sorted(self._results.iterdir()) if self._results.is_dir() else ():
            if path.is_dir() and path.name != self._study and self._counts(path, stage):
                for arm, values in measure(path, stage).items():
                    found[arm] += values
        return found

    def _counts(self, folder: Path, stage: str) -> bool:
        return not runs_a_model(stage) or self._player_of(folder) == self._player


def player_of(folder: Path) -> Player | None:
    """The player that config.yaml in a study's results names; None if the file does not say."""
    try:
        config = read_yaml(folder / "config.yaml")
        return Player(config["model"]["name"], config["engine"]["kind"])
    except (UserError, OSError, LookupError, TypeError):
        return None


def _mean(by_arm: _ByArm, arm: str, same: int, otherwise: int) -> Estimate:
    """Mean of an arm's values (source `same`), or of all arms' values (source `otherwise`)."""
    if by_arm.get(arm):
        return Estimate(statistics.fmean(by_arm[arm]), same)
    every = [value for values in by_arm.values() for value in values]
    return Estimate(statistics.fmean(every), otherwise)


def seconds_of_jobs(
    folder: Path, stage: str, counts: Callable[[Path], bool] = lambda _: True
) -> dict[str, list[float]]:
    """arm -> seconds of each past job of a stage, from the benchmark files in a study's folder.

    Jobs whose results were taken from another study are left out. A stage that writes timing.json
    counts all the same, because that file was taken too and holds the seconds of the job that ran.

    Args:
        folder: results/<study>.
        stage: the stage.
        counts: whether a job counts, by the folder of its results.
    """
    found = defaultdict(list)
    for path in _benchmarks(folder, stage):
        own = job_folder(folder, stage, path.stem)
        if path.name != TIMING and was_taken(own):
            continue
        seconds = benchmark_seconds(path)
        if seconds is not None and counts(own):
            arm = path.stem.rsplit(".", 2)[0] if belongs_to_an_arm(stage) else SHARED
            found[arm].append(seconds)
    return dict(found)


def benchmark_of(folder: Path, stage: str, name: str) -> Path:
    """The file with a job's seconds: Snakemake's benchmark, or the stage's own timing.json."""
    if TIMING in load(stage).OUTPUTS.values():
        return folder / load(stage).FOLDER / TIMING
    return folder / "benchmarks" / stage / f"{name}.jsonl"


def job_folder(folder: Path, stage: str, name: str) -> Path:
    """The folder of a job's outputs, from the name of its log and benchmark."""
    first, *named = load(stage).FOLDER.split("/")
    if "{" not in load(stage).FOLDER:
        return folder.joinpath(first, *named)
    return folder.joinpath(first, *name.rsplit(".", len(named) - 1))


def log_of(folder: Path, stage: str, name: str) -> Path:
    """The file that a job's messages go to."""
    return folder / "logs" / stage / f"{name}.log"


def _benchmarks(folder: Path, stage: str) -> list[Path]:
    if TIMING in load(stage).OUTPUTS.values():
        return [benchmark_of(folder, stage, stage)]
    return sorted((folder / "benchmarks" / stage).glob("*.jsonl"))


def benchmark_seconds(path: Path) -> float | None:
    """Seconds of a job from its benchmark file; None if the file is missing or cut off.

    For a retried job, Snakemake keeps the seconds of the last attempt.
    """
    try:
        return float(json.loads(path.read_bytes().splitlines()[-1])["s"])
    except (FileNotFoundError, IndexError, KeyError, TypeError, ValueError):
        return None


def bytes_of_jobs(folder: Path, stage: str) -> dict[str, list[float]]:
    """arm -> bytes of a stage's finished jobs in a study's folder; of many jobs, only a sample."""
    written = [[str(path) for path in sorted(folder.glob(part))] for part in _written(stage)]
    if not belongs_to_an_arm(stage) and "{" in load(stage).FOLDER:
        return {SHARED: [float(_weigh(path)) for path in _some(written[0])]} if written[0] else {}
    if not belongs_to_an_arm(stage):
        parts = [path for paths in written for path in paths]
        return {SHARED: [float(sum(map(_weigh, parts)))]} if written[0] else {}
    jobs = defaultdict(list)
    for path in written[0]:
        jobs[path.split("/")[-3]].append(path)
    return {arm: [float(_weigh(path)) for path in _some(paths)] for arm, paths in jobs.items()}


def _written(stage: str) -> list[str]:
    """Glob patterns of a stage's results: its folder, or its files if other stages share it."""
    module = load(stage)
    if "{" in module.FOLDER:
        return [re.sub(r"\{\w+\}", "*", module.FOLDER)]
    shared = module.FOLDER in {"", *(load(other).FOLDER for other in STAGES if other != stage)}
    if not shared:
        return [module.FOLDER]
    return [str(Path(module.FOLDER, name)) for name in module.OUTPUTS.values()]


def _some(paths: list[str]) -> list[str]:
    return paths[:: -(-len(paths) // _WEIGHED)]


def _weigh(path: str) -> int:
    """Bytes of a file, or of all files below a folder; links are not followed."""
    if os.path.islink(path) or not os.path.isdir(path):
        return os.lstat(path).st_size
    with os.scandir(path) as entries:
        return sum(_weigh(entry.path) for entry in entries)
