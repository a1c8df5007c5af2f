"""One run at a time for each study.

`python -m hgrpo.workflow.study_lock results/<study>` ends with an error while a run goes on, or
while jobs of a killed run do.
"""

import fcntl
import os
import sys
from pathlib import Path
from typing import IO

from hgrpo.command import run
from hgrpo.errors import UserError
from hgrpo.stages.order import STAGES

_COMMANDS = {f"hgrpo.cli.{stage}" for stage in STAGES}


def hold_study(results: Path) -> IO[str]:
    """Hold the lock of a study's results until this process ends, however it ends.

    Snakemake has a lock too, but the end of any other run in the same folder removes that lock. On
    a disk where files cannot be locked, as on some network disks, this function locks nothing.

    Args:
        results: results/<study>.

    Returns:
        The open file that holds the lock. Keep a reference to it.

    Raises:
        UserError: another process holds the lock.
    """
    results.mkdir(parents=True, exist_ok=True)
    file = (results / ".lock").open("a", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UserError(f"{results}: another snakemake is running this study") from None
    except OSError:
        pass  # this disk has no locks
    return file


def running_jobs(results: Path) -> list[int]:
    """Processes of this folder that run a job of a study; none where the system has no /proc.

    Args:
        results: results/<study>, relative to this folder, as jobs have it in their commands.
    """
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_text(errors="replace", encoding="utf-8").split("\0")
            here = os.path.samefile(process / "cwd", ".")
        except OSError:
            continue  # it has ended, or belongs to somebody else
        is_job = any(word in _COMMANDS for word in words)
        if here and is_job and any(word.startswith(f"{results}/") for word in words):
            found.append(int(process.name))
    return sorted(found)


def check_nothing_runs(results: Path) -> None:
    """Refuse to unlock a study while snakemake runs it, or jobs of a killed snakemake.

    Raises:
        UserError: something runs. The message names the processes of jobs.
    """
    hold_study(results).close()
    if jobs := running_jobs(results):
        numbers = " ".join(map(str, jobs))
        raise UserError(
            f"{results}: jobs of a killed snakemake are still running; wait until they have ended, "
            f"or end them with `kill {numbers}`"
        )


if __name__ == "__main__":
    run(lambda: check_nothing_runs(Path(sys.argv[1])))
