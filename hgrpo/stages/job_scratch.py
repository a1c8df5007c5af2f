"""The scratch folder of a job: the study's own, or one beside the results of a single command."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hgrpo.learning.scratch import locked_scratch


def scratch_root(given: Path | None, out: Path) -> Path:
    """The folder of `--scratch`, or without one a folder beside the results."""
    return given or out.with_name(f"{out.name}-scratch")


@contextmanager
def job_scratch(given: Path | None, out: Path, key: str) -> Iterator[Path]:
    """Lock the scratch folder and yield the place for this job's steps.

    A folder beside `out` goes with its lock if the block succeeds. One that was given stays: the
    run of the study empties it after its last job.

    Args:
        given: the folder of `--scratch`, if any.
        out: the folder of the results.
        key: from `resume_key`.
    """
    root = scratch_root(given, out)
    with locked_scratch(root, key) as folder:
        yield folder
        if given is None:
            shutil.rmtree(folder, ignore_errors=True)
            # Still locked, so that no other process can have begun here.
            (root / "lock").unlink(missing_ok=True)
            with suppress(OSError):
                root.rmdir()
