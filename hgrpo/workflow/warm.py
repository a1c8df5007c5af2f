"""Run local jobs in forks of a warm process that has imported torch, transformers and pandas.

These imports take two to four seconds per job, and a study has hundreds of jobs. `start` launches
the warm process at the start of a run, `serve` is its main loop, and `run_warm` is the client that
Snakemake runs for each job. Without a warm process, a job imports everything itself; its results
are the same. The warm process imports no hgrpo modules that jobs use, so jobs run current code.

`python -m hgrpo.workflow.warm LIBRARY...` runs the warm process until its standard input closes.
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

# Socket address of the warm process; one process serves all runs with the same store.
SOCKET = Path("results/store/warm.socket")
# Messages to a client. `_TAKEN`: a fork accepted the job. `_ENDED`: the exit status follows.
_TAKEN, _ENDED = b"t", b"e"
# Timeout for receiving a job from a client, and maximum size of a job in bytes.
_PATIENCE_S, _LARGEST = 10.0, 1 << 20
_PR_SET_PDEATHSIG = 1
_STARTED: list[subprocess.Popen] = []

# Slow imports of the jobs.
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
# Libraries read these variables at import. Snakemake sets them to a job's number of threads.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def start() -> None:
    """Start the warm process, unless another run's process already serves this store."""
    with _socket() as link, contextlib.suppress(OSError):
        link.connect(str(SOCKET))
        return
    SOCKET.unlink(missing_ok=True)
    # The list keeps the pipe open. When this process ends for any reason, the pipe closes, which
    # also stops the warm process.
    _STARTED.append(
        subprocess.Popen(
            [sys.executable, "-m", "hgrpo.workflow.warm", *_LIBRARIES],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | dict.fromkeys(_THREADS, "1"),
            # Ctrl-C reaches only the clients, which forward it to the forks.
            start_new_session=True,
        )
    )


def _socket() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # preserves message boundaries


def run_warm(module: str) -> int | None:
    """Run `python -m module` with this process's arguments in a fork of the warm process.

    The fork gets this process's working folder, environment, standard streams and signals. If this
    process is killed, so is the fork.

    Returns:
        The job's exit status, or None if the caller must run the job itself. The reason is that no
        fork accepted the job, that the job does not use exactly one thread, or that the warm
        process was killed during the job, for example by the out-of-memory killer.
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
    # A restart is safe: results are written atomically, and `command.run` resets signal handlers.
    print("the process that ran this job was killed; restarting the job", file=sys.stderr)
    return None


@dataclass(frozen=True)
class Job:
    """A client's command; `files` are the descriptors for its stdin, stdout and stderr."""

    module: str
    arguments: list[str]
    folder: str
    environment: dict[str, str]
    files: list[int]
    link: socket.socket


def serve(path: Path) -> Job | None:
    """Fork for each job. The fork returns the job; the parent returns None once stdin closes."""
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
    """Fork for a new client. The fork returns the job, and the parent returns None.

    If forking fails, e.g. for lack of memory, close the connection; the client then runs the job.
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
    """Forward a signal from the client to its fork; kill the fork if the client has exited."""
    if link.fileno() < 0:
        return  # `_report` has just closed the link
    try:
        signals = link.recv(1)
    except OSError:
        signals = b""
    if not signals:
        waiting.unregister(link)
    # The process id cannot have been reused yet, because only `_report` reaps the fork.
    os.kill(pid, signals[0] if signals else signal.SIGKILL)


def _report(pidfd: int, pid: int, link: socket.socket, waiting: selectors.BaseSelector) -> None:
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    waiting.unregister(pidfd)
    os.close(pidfd)
    if link in waiting.get_map():
        waiting.unregister(link)
    with contextlib.suppress(OSError):  # the client may have exited
        link.sendall(_ENDED + bytes([code if code >= 0 else 128 - code]))
    link.close()


def become(job: Job, server: int) -> None:
    """In a fork, adopt the job's folder, environment, arguments and streams; notify the client.

    Args:
        server: process id of the warm process.
    """
    # In a new session, the fork gets no Ctrl-C. PDEATHSIG kills it if the warm process dies.
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
    tempfile.tempdir = None  # a preloaded library may have cached the parent's TMPDIR
    sys.argv = [job.module, *job.arguments]
    job.link.sendall(_TAKEN)
    job.link.close()


def main() -> None:
    """Import the installed libraries and serve; in a fork, run the job."""
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
