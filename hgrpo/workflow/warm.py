"""Local jobs run in forks of one process that has imported torch, transformers and pandas already.

To import them takes a job two to four seconds, and a study has hundreds of jobs. `start` starts
the process with a run, `serve` is its loop, and `run_warm` is what Snakemake sees of a job. Without
the process, a job imports everything itself, with the same results. The process imports no module
that a job runs, because a job must run the code as it is when the job starts.

`python -m hgrpo.workflow.warm LIBRARY...` is the process; it runs until its input ends.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

# One process serves all runs of a store. Jobs find it by this name.
SOCKET = Path("results/store/warm.socket")
# Messages: a fork has taken a job; the job has ended, followed by its status.
_TAKEN, _ENDED = b"t", b"e"
# How long a client may take to hand over a job, and the job's largest size in bytes.
_PATIENCE_S, _LARGEST = 10.0, 1 << 20
_PR_SET_PDEATHSIG = 1
_STARTED: list[subprocess.Popen] = []

# What jobs import, and that takes long.
_LIBRARIES = (
    "torch",
    "pandas",
    "pyarrow.parquet",
    "safetensors.torch",
    "transformers.models.qwen2.modeling_qwen2",
    "transformers.models.auto.modeling_auto",
    "peft",
    "numba",
)
# Libraries read these when they are imported. Snakemake sets them for each job, to its threads.
_THREADS = (
    "OMP_NUM_THREADS",
    "GOTO_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def start() -> None:
    """Start the process, unless that of another run serves this store already."""
    with _socket() as link, contextlib.suppress(OSError):
        link.connect(str(SOCKET))
        return
    SOCKET.unlink(missing_ok=True)
    # Its input ends with this process, however this process ends; a list keeps it open till then.
    _STARTED.append(
        subprocess.Popen(
            [sys.executable, "-m", "hgrpo.workflow.warm", *_LIBRARIES],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | dict.fromkeys(_THREADS, "1"),
            # Ctrl-C reaches the clients, which pass it on to the forks.
            start_new_session=True,
        )
    )


def _socket() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # it keeps messages apart


def run_warm(module: str) -> int | None:
    """Run `python -m module` with this process's arguments in a fork of the warm process.

    The fork has this process's folder, environment, input and output. It gets the signals that this
    process gets, and is killed if this process is.

    Returns:
        The exit status; None if the caller must run the job itself: no fork has taken it, it needs
        another number of threads than the warm process has, or the warm process was killed
        under it, as by a system that is short of memory.
    """
    if not SOCKET.exists() or os.environ.get("OMP_NUM_THREADS") != "1":
        return None
    link = _socket()
    try:
        link.connect(str(SOCKET))
        job = json.dumps([module, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
        socket.send_fds(link, [job], [0, 1, 2])
        taken = link.recv(1) == _TAKEN
    except OSError:
        taken = False
    if not taken:
        link.close()
        return None

    def forward(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(OSError):  # the job has ended
            link.sendall(bytes([number]))

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, forward)
    answer = b""
    with contextlib.suppress(OSError):
        answer = link.recv(2)
    if answer[:1] == _ENDED:
        return answer[1]
    # A job never leaves half a result, so it can begin again here. `command.run` sets the handlers.
    print("the process that ran this job was killed; the job begins again", file=sys.stderr)
    return None


@dataclass(frozen=True)
class Job:
    """A command as a client hands it over; `files` become its input, output and error output."""

    module: str
    arguments: list[str]
    folder: str
    environment: dict[str, str]
    files: list[int]
    link: socket.socket


def serve(path: Path) -> Job | None:
    """Fork for every job. In a fork, return its job; in the process itself, None at the end."""
    listener = _socket()
    listener.bind(str(path))
    listener.listen(64)
    waiting = selectors.DefaultSelector()
    waiting.register(listener, selectors.EVENT_READ, ("listener",))
    waiting.register(sys.stdin, selectors.EVENT_READ, ("end",))
    while True:
        for key, _ in waiting.select():
            kind, *rest = key.data
            if kind == "end":
                return None
            if kind == "listener":
                job = _accept(listener, waiting)
                if job is not None:
                    return job
            elif kind == "client":
                _obey(key.fileobj, *rest, waiting)
            else:
                _report(key.fileobj, *rest, waiting)


def _accept(listener: socket.socket, waiting: selectors.BaseSelector) -> Job | None:
    """Fork for a new client; return the job in the fork, and None in the process itself.

    If the client has gone, or if there is no memory for a fork, the link is closed. A client whose
    job no fork has taken runs it by itself.
    """
    link, _ = listener.accept()
    try:
        link.settimeout(_PATIENCE_S)
        text, files, _, _ = socket.recv_fds(link, _LARGEST, 3)
        link.settimeout(None)
        job = Job(*json.loads(text), files, link)
        pid = os.fork()
    except (OSError, ValueError):
        link.close()
        return None
    if not pid:
        return job
    for number in files:
        os.close(number)
    waiting.register(link, selectors.EVENT_READ, ("client", pid))
    waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, ("ended", pid, link))
    return None


def _obey(link: socket.socket, pid: int, waiting: selectors.BaseSelector) -> None:
    """Send the fork the signal that its client got; kill it if the client has gone."""
    if link.fileno() < 0:
        return  # the fork ended a moment ago
    try:
        signals = link.recv(1)
    except OSError:
        signals = b""
    if not signals:
        waiting.unregister(link)
    # The fork is waited for only in `_report`, so its id cannot belong to another process.
    os.kill(pid, signals[0] if signals else signal.SIGKILL)


def _report(pidfd: int, pid: int, link: socket.socket, waiting: selectors.BaseSelector) -> None:
    """Send the client the status of the ended fork."""
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    waiting.unregister(pidfd)
    os.close(pidfd)
    if link in waiting.get_map():
        waiting.unregister(link)
    with contextlib.suppress(OSError):  # the client may have gone
        link.sendall(_ENDED + bytes([code if code >= 0 else 128 - code]))
    link.close()


def become(job: Job, server: int) -> None:
    """In a fork, take on what a process of the job's own would have, and answer the client.

    Args:
        server: process id of the warm process.
    """
    # A session of its own: signals come from the client alone. It ends with the warm process.
    os.setsid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:
        os._exit(1)
    for number, file in enumerate(job.files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(job.folder)
    os.environ.clear()
    os.environ.update(job.environment)
    tempfile.tempdir = None  # a library may have set it already
    sys.argv = [job.module, *job.arguments]
    job.link.sendall(_TAKEN)
    job.link.close()


def main() -> None:
    """Import the libraries that are installed, serve, and in a fork run the job."""
    for name in sys.argv[1:]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()
    server = os.getpid()
    job = serve(SOCKET)
    if job is None:
        SOCKET.unlink(missing_ok=True)
        return
    become(job, server)
    runpy.run_module(job.module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
