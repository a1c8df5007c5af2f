"""The jobs of a study and which of them are to run, from Snakemake's own table."""

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hgrpo.errors import UserError

# In the order in which they run.
STAGES = (
    *("study_config", "assets", "expert", "base", "sft", "rl_round", "turnrd_fit", "evaluate"),
    *("merge", "figures", "report"),
)
OF_ARMS = ("rl_round", "turnrd_fit", "evaluate")
SHARED = "shared"  # what stands for an arm where a job belongs to all of them

# What an exception group is drawn with, at the beginning of a line.
_BOX = "|+- \t"
# An exception's name and its message, as Python prints them, or an error of ours.
_EXCEPTION = re.compile(r"([\w.]*(Error|Exception)\w*|error):\s*\S")


@dataclass(frozen=True)
class Job:
    """One job.

    Attributes:
        stage: name of its rule.
        folder: where its files stand, such as results/bakeoff/rl/flatGRPO/seed_11/round_2.
        to_run: nothing finished takes its place.
        lost: a file of it that is gone though the job is not to run; "" where none is.
    """

    stage: str
    folder: str
    to_run: bool
    lost: str = ""

    @property
    def arm(self) -> str:
        """The method it belongs to, or `SHARED`."""
        return self.folder.split("/")[-3] if self.stage in OF_ARMS else SHARED

    @property
    def seed(self) -> str:
        """The seed it belongs to, as its folder's name; "" for a job of all of them."""
        return self.folder.split("/")[-2] if self.stage in OF_ARMS else ""

    @property
    def name(self) -> str:
        """Its benchmark file, without the suffix."""
        if self.stage in OF_ARMS:
            return ".".join(self.folder.split("/")[-3:])
        return "config" if self.stage == "study_config" else self.stage


def snakemake_summary(settings: Sequence[str], profile: Path) -> str:
    """The table of `snakemake --summary` as hgrpo/workflow/planning/listing.py shortens it.

    It builds the graph of jobs and no more. A dry run lists less and takes longer, since it goes
    on to write every job out.

    Raises:
        UserError: snakemake fails, with its most telling line.
    """
    command = [sys.executable, "-m", "hgrpo.workflow.planning.listing", "--summary"]
    command += ["--workflow-profile", str(profile)]
    if settings:
        command += ["--config", *settings]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = telling_line(done.stderr) or telling_line(done.stdout) or "no message"
        raise UserError(f"snakemake --summary: {said}")
    return done.stdout


def telling_line(text: str) -> str:
    """The line of what a failed program printed that says most about why.

    That is the last one that names an exception or an error with a message, else the last one;
    without what an exception group is drawn with. "" where there is none.
    """
    lines = [line.lstrip(_BOX).rstrip() for line in text.splitlines()]
    # What is left of a rule, such as "1 ----------------", says nothing.
    lines = [line for line in lines if line.strip("0123456789.- ")]
    errors = [line for line in lines if _EXCEPTION.match(line)]
    return (errors or lines or [""])[-1]


def read_jobs(summary: str) -> list[Job]:
    """The jobs in the lines of `snakemake --summary`.

    All files of a job stand in one folder, or in `adapter` or `tables` below it.
    """
    found: dict[tuple[str, str], Job] = {}
    for line in summary.splitlines():
        row = line.split("\t")
        if len(row) > 4 and row[0] != "output_file":
            path, stage, to_run = row[0], row[2], row[-1].strip() != "no update"
            folder = _home(path)
            before = found.get((stage, folder))
            lost = before.lost if before else ""
            if not to_run and row[-2] == "missing":
                lost = lost or path
            found[stage, folder] = Job(stage, folder, to_run, lost)
    return list(found.values())


def _home(output: str) -> str:
    return output.rpartition("/")[0].removesuffix("/adapter").removesuffix("/tables")
