"""The jobs of a study, and which of them will run, from `snakemake --summary`."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.stages.order import STAGES, belongs_to_an_arm, load
from hgrpo.workflow.packages import plugins
from hgrpo.workflow.planning.profile import read_profile
from hgrpo.workflow.telling_line import telling_line

# Stands for the arm of a job that serves all arms.
SHARED = "shared"


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
        folder = _job_folder(path, stage)
        before = found.get((stage, folder))
        lost = before.lost if before else ""
        if not to_run and row[-2] == "missing":
            lost = lost or path
        found[stage, folder] = Job(stage, folder, to_run, lost)
    return list(found.values())


def _job_folder(path: str, stage: str) -> str:
    """Folder of the job that writes a file: results/<study>/ and the stage's folder."""
    parts = path.split("/")
    # The path of a file in a bucket has other folders before `results`.
    depth = parts.index("results") + 2 + len(list(filter(None, load(stage).FOLDER.split("/"))))
    return "/".join(parts[:depth])
