"""The jobs of a study: which will run, from `snakemake --summary`, and what past ones took."""

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.stages.order import STAGES, belongs_to_an_arm, load
from hgrpo.stages.timing import TIMING
from hgrpo.workflow.packages import plugins
from hgrpo.workflow.planning.profile import read_profile
from hgrpo.workflow.reuse import was_taken
from hgrpo.workflow.telling_line import telling_line

# Stands for the arm of a job that serves all arms.
SHARED = "shared"
# At most this many folders are measured per stage and arm. More would hardly change the mean.
_WEIGHED = 20


@dataclass(frozen=True)
class Job:
    """One job.

    Attributes:
        stage: name of the stage, which is also the name of the job's rule.
        folder: folder of its outputs, such as results/bakeoff/rl/flatGRPO/seed_11/round_2.
        to_run: whether the job will run.
        lost: a missing file of a job that will not run; "" if no file is missing.
    """

    stage: str
    folder: str
    to_run: bool
    lost: str = ""

    @property
    def arm(self) -> str:
        """The job's method, or `SHARED`."""
        return self.folder.split("/")[-3] if belongs_to_an_arm(self.stage) else SHARED

    @property
    def seed(self) -> str:
        """Name of the seed's folder; "" for a job that serves all seeds."""
        return self.folder.split("/")[-2] if belongs_to_an_arm(self.stage) else ""

    @property
    def name(self) -> str:
        """Name of the job's log and benchmark, without the suffix."""
        below = load(self.stage).FOLDER.split("/")[1:]
        if not any("{" in part for part in below):
            return self.stage
        return ".".join(self.folder.split("/")[-len(below) :])


def snakemake_summary(settings: Sequence[str], profile: Path) -> str:
    """The table of `snakemake --summary`: each output file with its rule, status and plan.

    Raises:
        UserError: Snakemake lacks the profile's plug-in, or fails; the message is the line that
            best explains why.
    """
    for each in plugins(read_profile(profile).executor):
        if each.lacking:
            raise UserError(f"{profile}: {each.name}: {each.found}")
    command = [sys.executable, "-m", "snakemake", "--summary", "--workflow-profile", str(profile)]
    if settings:
        command += ["--config", *settings]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        said = telling_line(done.stderr) or telling_line(done.stdout) or "no message"
        raise UserError(f"snakemake --summary: {said}")
    return done.stdout


def read_jobs(summary: str) -> list[Job]:
    """The jobs in the table of `snakemake --summary`, in its order.

    Rows of rules that are not stages, such as targets, are skipped.
    """
    found: dict[tuple[str, str], Job] = {}
    for line in summary.splitlines():
        row = line.split("\t")
        if len(row) <= 4 or row[2] not in STAGES:
            continue
        path, stage, to_run = row[0], row[2], row[-1].strip() != "no update"
        folder = _folder_of(path, stage)
        before = found.get((stage, folder))
        lost = before.lost if before else ""
        if not to_run and row[-2] == "missing":
            lost = lost or path
        found[stage, folder] = Job(stage, folder, to_run, lost)
    return list(found.values())


def _folder_of(path: str, stage: str) -> str:
    """Folder of the job that writes a file: results/<study>/ and the stage's folder."""
    parts = path.split("/")
    # The path of a file in a bucket has other folders before `results`.
    depth = parts.index("results") + 2 + len(list(filter(None, load(stage).FOLDER.split("/"))))
    return "/".join(parts[:depth])


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
    module, jobs = load(stage), defaultdict(list)
    if "{" in module.FOLDER:
        for path in sorted(folder.glob(re.sub(r"\{\w+\}", "*", module.FOLDER))):
            jobs[path.parts[-3] if belongs_to_an_arm(stage) else SHARED].append(path)
        some = {arm: paths[:: -(-len(paths) // _WEIGHED)] for arm, paths in jobs.items()}
        return {arm: [float(_weigh(str(path))) for path in paths] for arm, paths in some.items()}
    shares = module.FOLDER in {"", *(load(other).FOLDER for other in STAGES if other != stage)}
    names = module.OUTPUTS.values() if shares else [""]
    parts = [path for name in names if (path := folder / module.FOLDER / name).exists()]
    return {SHARED: [float(sum(_weigh(str(path)) for path in parts))]} if parts else {}


def _weigh(path: str) -> int:
    """Bytes of a file, or of all files below a folder; links are not followed."""
    if os.path.islink(path) or not os.path.isdir(path):
        return os.lstat(path).st_size
    with os.scandir(path) as entries:
        return sum(_weigh(entry.path) for entry in entries)
