"""The jobs of a study and which of them are to run, from Snakemake's own table."""

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.stages.order import STAGES, belongs_to_an_arm, load

# Stands for the arm of a job that belongs to all arms.
SHARED = "shared"

# Characters that an exception group is drawn with, at the beginning of a line.
_BOX = "|+- \t"
# An exception's name and its message, as Python prints them; or an error of this project.
_EXCEPTION = re.compile(r"([\w.]*(Error|Exception)\w*|error):\s*\S")


@dataclass(frozen=True)
class Job:
    """One job.

    Attributes:
        stage: name of its rule.
        folder: its folder, such as results/bakeoff/rl/flatGRPO/seed_11/round_2.
        to_run: it has to run.
        lost: a file of the job that is gone although the job is not to run; "" if all are there.
    """

    stage: str
    folder: str
    to_run: bool
    lost: str = ""

    @property
    def arm(self) -> str:
        """The method it belongs to, or `SHARED`."""
        return self.folder.split("/")[-3] if belongs_to_an_arm(self.stage) else SHARED

    @property
    def seed(self) -> str:
        """The name of its seed's folder; "" for a job of all seeds."""
        return self.folder.split("/")[-2] if belongs_to_an_arm(self.stage) else ""

    @property
    def name(self) -> str:
        """The name of its log and of its benchmark, without the suffix."""
        if belongs_to_an_arm(self.stage):
            return ".".join(self.folder.split("/")[-3:])
        return self.stage


def snakemake_summary(settings: Sequence[str], profile: Path) -> str:
    """The table of `snakemake --summary`: a row for each output file, with its rule and plan.

    Raises:
        UserError: snakemake fails; with its most telling line.
    """
    command = [sys.executable, "-m", "snakemake", "--summary", "--workflow-profile", str(profile)]
    if settings:
        command += ["--config", *settings]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = telling_line(done.stderr) or telling_line(done.stdout) or "no message"
        raise UserError(f"snakemake --summary: {said}")
    return done.stdout


def telling_line(text: str) -> str:
    """The line of a failed program's output that says most about why it failed.

    That is the last line that names an exception or an error with its message, else the last line.
    "" if there is no line.
    """
    lines = [line.lstrip(_BOX).rstrip() for line in text.splitlines()]
    # The remains of a drawn rule, such as "1 ----------------", say nothing.
    lines = [line for line in lines if line.strip("0123456789.- ")]
    errors = [line for line in lines if _EXCEPTION.match(line)]
    return (errors or lines or [""])[-1]


def read_jobs(summary: str) -> list[Job]:
    """The jobs in the table of `snakemake --summary`, in its order.

    Snakemake lists targets that are no stage too; they have no files.
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
    """The folder of the job that writes a file: results/<study>, and below it the stage's own."""
    depth = 2 + len(load(stage).FOLDER.split("/")) if load(stage).FOLDER else 2
    return "/".join(path.split("/")[:depth])
