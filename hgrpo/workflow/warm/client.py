"""A job's own process: it hands the job to the warm process, and ends as the job ends."""

import contextlib
import json
import os
import signal
import socket
import sys
from types import FrameType

from hgrpo.workflow.warm import ENDED, TAKEN

# The environment variable that holds the path of the warm process's socket.
VARIABLE = "HGRPO_WARM"
_KILLED = 128 + signal.SIGKILL


def run_warm(module: str) -> int | None:
    """Run `python -m module` with this process's arguments in a fork of the warm process.

    The fork has this process's folder, environment, input and output. It gets the signals that this
    process gets, and is killed if this process is.

    Returns:
        The exit status; None if no fork has taken the job, or if the job asks for another number of
        threads than the warm process has.
    """
    path = os.environ.pop(VARIABLE, "")
    if not path or os.environ.get("OMP_NUM_THREADS") != "1":
        return None
    link = socket.socket(socket.AF_UNIX)
    try:
        link.connect(path)
        job = json.dumps([module, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
        socket.send_fds(link, [len(job).to_bytes(8, "big")], [0, 1, 2])
        link.sendall(job)
        taken = link.recv(1) == TAKEN
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
        answer = link.recv(2, socket.MSG_WAITALL)
    if answer[:1] != ENDED:
        print("error: the process that ran this job was killed", file=sys.stderr)
        return _KILLED
    return answer[1]
