"""Reports the progress of a job.

Outside the pipeline, progress is shown as a bar. In the pipeline, a job writes a progress file next
to its log, which the monitor and the pipeline's terminal read. The file is written when the job
starts, every few seconds while a bar advances, and when the job ends, unless it is killed.
"""

import io
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tqdm import tqdm

from hgrpo.atomic import atomic_file
from hgrpo.errors import UserError, one_line
from hgrpo.games import tracking

FINISHED, INTERRUPTED = "finished", "interrupted"
_EVERY_S = 2.0


def progress_file(log: Path) -> Path:
    """Path of the progress file for the job with this log."""
    return log.with_suffix(".progress.json")


@dataclass(frozen=True)
class Progress:
    """The content of a progress file.

    Attributes:
        host, pid: the job's machine and process.
        started, written: times of the job's start and last write, in seconds since the epoch.
        done, total: number of completed units of work and of all units; `total` is 0 if unknown.
        unit: unit of work, such as `step`; "" before the first bar.
        left_s: estimated seconds left at the last write; None if unknown.
        postfix: latest metrics, such as `step=3, success=0.43`.
        cautions: warnings about the job's results.
        ended: `FINISHED`, `INTERRUPTED` or an error as one line; "" while the job runs.
    """

    host: str
    pid: int
    started: float
    written: float = 0.0
    done: float = 0
    total: float = 0
    unit: str = ""
    left_s: float | None = None
    postfix: str = ""
    cautions: tuple[str, ...] = ()
    ended: str = ""

    @property
    def share(self) -> float:
        """Finished share of the work, from 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0

    def lives(self) -> bool:
        """Whether the job has not ended. If it is on this machine, its process must exist, too."""
        here = self.host == socket.gethostname()
        return not self.ended and not (here and not os.path.exists(f"/proc/{self.pid}"))


class _File:
    """Writes the progress file of the job in this process; ignores write errors."""

    def __init__(self, path: Path):
        self._path, self._wrote = path, 0.0
        self.now = Progress(socket.gethostname(), os.getpid(), time.time())

    def write(self, at_once: bool = True, **changes: object) -> None:
        """Update the content; without `at_once`, write at most once every `_EVERY_S` seconds."""
        self.now = replace(self.now, **changes)
        if not at_once and time.monotonic() < self._wrote + _EVERY_S:
            return
        self._wrote = time.monotonic()
        with suppress(OSError), atomic_file(self._path) as file:
            content = asdict(self.now) | {"written": time.time()}
            file.write_text(json.dumps(content) + "\n", encoding="utf-8")


_files: list[_File] = []


@contextmanager
def written_progress(log: Path | None) -> Iterator[None]:
    """Write progress within the block to `progress_file(log)`; without `log`, draw bars instead.

    In a job of several processes, only rank 0 writes.
    """
    if log is None or os.environ.get("RANK", "0") != "0":
        yield
        return
    file = _File(progress_file(log))
    file.write()
    _files.append(file)
    ended = FINISHED
    try:
        yield
    except KeyboardInterrupt:
        ended = INTERRUPTED
        raise
    except SystemExit:  # another process of the job has failed and has written the reason
        ended = (read_progress(log) or file.now).ended or "error: a process of the job failed"
        raise
    except BaseException as error:
        name = "error" if isinstance(error, UserError) else type(error).__name__
        ended = f"{name}: {one_line(error)}"
        raise
    finally:
        _files.remove(file)
        file.write(ended=ended)


def read_progress(log: Path) -> Progress | None:
    """Read the progress of the job with this log; None if there is no readable progress file."""
    try:
        return Progress(**json.loads(progress_file(log).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def print_caution(text: str) -> None:
    """Print a warning about the job's results, and write it to the job's progress file."""
    print(f"caution: {text}")
    for file in _files:
        file.write(cautions=(*file.now.cautions, text))


class Bar(tqdm):
    """A tqdm bar; within `written_progress`, it writes the progress file instead of drawing."""

    def __init__(self, *args: object, **kwargs: object):
        if _files:
            kwargs |= {"file": io.StringIO(), "mininterval": _EVERY_S}
            kwargs["disable"] = bool(kwargs.get("disable"))  # None would disable it for a file
        super().__init__(*args, **kwargs)

    def display(self, msg: str | None = None, pos: int | None = None) -> bool:
        """Show the current state; tqdm calls this at intervals, and finally with `disable` set."""
        if not _files:
            return super().display(msg, pos)
        now = self.format_dict
        total, elapsed = now["total"] or 0, now["elapsed"]
        rate = now["rate"] or (now["n"] - now["initial"]) / elapsed if elapsed else 0
        left = (total - now["n"]) / rate if rate and total else None
        _files[-1].write(
            at_once=self.disable,
            done=now["n"],
            total=total,
            unit=now["unit"],
            left_s=left,
            postfix=now["postfix"] or "",
        )
        return True


tracking.bar = Bar
