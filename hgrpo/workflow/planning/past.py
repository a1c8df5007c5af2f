"""What past jobs took and wrote: from Snakemake's benchmark files and the results themselves."""

import functools
import json
import os
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hgrpo.config.read import read_yaml
from hgrpo.errors import UserError
from hgrpo.workflow.planning.jobs import OF_ARMS, SHARED

# Where an estimate comes from: the same arm of this study, other arms of it, other studies.
OWN, OTHER_ARMS, OTHER_STUDIES = range(3)

# Stages that run or keep a model: what they took with one says nothing of another.
OF_MODELS = ("base", "sft", "rl_round", "turnrd_fit", "evaluate")

# What a job of a stage leaves in its study's folder; of an arm's job, `*` is arm, seed and round.
_WRITES = {
    "study_config": ("config.yaml",),
    "assets": ("assets",),
    "expert": ("expert",),
    "base": ("base",),
    "sft": ("sft",),
    "rl_round": ("rl/*/seed_*/round_*",),
    "turnrd_fit": ("turnrd/*/seed_*/round_*",),
    "evaluate": ("eval/*/seed_*/round_*",),
    "merge": ("report/episodes.parquet",),
    "figures": ("report/figures",),
    "report": ("report/report.html", "report/methods_comparison.json", "report/tables"),
}
_WEIGHED = 20  # folders of a stage and arm: more of them say the same

_ByArm = Mapping[str, list[float]]
_Measure = Callable[[Path, str], _ByArm]


@dataclass(frozen=True)
class Player:
    """What plays and learns in a study.

    Attributes:
        model: its name.
        engine: kind of the one that it plays with.
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


class Past:
    """Means over the past jobs of a stage and arm, of the nearest jobs that there are.

    Those are of the same arm of the study, else of its other arms, else of that arm in other
    studies, else of any arm there. Of `OF_MODELS`, other studies count only with the same player.

    Args:
        results: folder of all studies.
        study: name of the one in hand.
        player: of that one.
    """

    def __init__(self, results: Path, study: str, player: Player):
        self._results, self._study, self._player = results, study, player
        self._player_of = functools.cache(player_of)
        self._own = functools.cache(lambda measure, stage: measure(results / study, stage))
        self._others = functools.cache(self._read_others)

    def seconds(self, stage: str, arm: str) -> Estimate | None:
        """Seconds of a job; None where no past job of the stage counts."""
        return self._nearest(seconds_of_jobs, stage, arm)

    def bytes(self, stage: str, arm: str) -> Estimate | None:
        """Bytes that a job leaves; None where no past job of the stage counts."""
        return self._nearest(bytes_of_jobs, stage, arm)

    def _nearest(self, measure: _Measure, stage: str, arm: str) -> Estimate | None:
        own = self._own(measure, stage)
        if own:
            return _mean(own, arm, OWN, OTHER_ARMS)
        others = self._others(measure, stage)
        return _mean(others, arm, OTHER_STUDIES, OTHER_STUDIES) if others else None

    def _read_others(self, measure: _Measure, stage: str) -> _ByArm:
        """arm -> values, of all studies together that count beside the one in hand."""
        found = defaultdict(list)
        for path in sorted(self._results.iterdir()) if self._results.is_dir() else ():
            if path.is_dir() and path.name != self._study and self._counts(path, stage):
                for arm, values in measure(path, stage).items():
                    found[arm] += values
        return found

    def _counts(self, folder: Path, stage: str) -> bool:
        return stage not in OF_MODELS or self._player_of(folder) == self._player


def player_of(folder: Path) -> Player | None:
    """The player of a study that has run, from its folder; None where that does not say."""
    try:
        config = read_yaml(folder / "config.yaml")
        return Player(config["model"]["name"], config["engine"]["kind"])
    except (UserError, OSError, LookupError, TypeError):
        return None


def _mean(by_arm: _ByArm, arm: str, same: int, otherwise: int) -> Estimate:
    """Mean of an arm's values, from the source `same`; else of all there are, `otherwise`."""
    if by_arm.get(arm):
        return Estimate(statistics.fmean(by_arm[arm]), same)
    every = [value for values in by_arm.values() for value in values]
    return Estimate(statistics.fmean(every), otherwise)


def seconds_of_jobs(folder: Path, stage: str) -> dict[str, list[float]]:
    """arm -> seconds of each past job of a stage, from a study's benchmark files."""
    found = defaultdict(list)
    for path in sorted((folder / "benchmarks" / stage).glob("*.jsonl")):
        seconds = benchmark_seconds(path)
        if seconds is not None:
            found[path.stem.rsplit(".", 2)[0] if stage in OF_ARMS else SHARED].append(seconds)
    return dict(found)


def benchmark_seconds(path: Path) -> float | None:
    """Seconds of the job of a benchmark file; None where the file is missing or was cut off.

    Of a job that took several attempts it is the last one's, which is all that Snakemake keeps.
    """
    try:
        return float(json.loads(path.read_bytes().splitlines()[-1])["s"])
    except (FileNotFoundError, IndexError, KeyError, TypeError, ValueError):
        return None


def bytes_of_jobs(folder: Path, stage: str) -> dict[str, list[float]]:
    """arm -> bytes of each of some finished jobs of a stage, in a study's folder."""
    written = [[str(path) for path in sorted(folder.glob(part))] for part in _WRITES[stage]]
    if stage not in OF_ARMS:
        parts = [path for paths in written for path in paths]
        return {SHARED: [float(sum(map(_weigh, parts)))]} if written[0] else {}
    jobs = defaultdict(list)
    for path in written[0]:
        jobs[path.split("/")[-3]].append(path)
    return {arm: [float(_weigh(path)) for path in _some(paths)] for arm, paths in jobs.items()}


def _some(paths: list[str]) -> list[str]:
    return paths[:: -(-len(paths) // _WEIGHED)]


def _weigh(path: str) -> int:
    """Bytes of a file, or of all files below a folder; a link weighs what itself does."""
    if os.path.islink(path) or not os.path.isdir(path):
        return os.lstat(path).st_size
    with os.scandir(path) as entries:
        return sum(_weigh(entry.path) for entry in entries)
