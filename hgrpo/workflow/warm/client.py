"""A job's own process: it hands the job to the warm process, and ends as the job ends."""

import json
import os
import signal
import socket
import sys
from types import FrameType

# The environment variable that holds the path of the warm process's socket.
VARIABLE = "HGRPO_WARM"
_KILLED = 128 + signal.SIGKILL


def run_warm(module: str) -> int | None:
    """Run `python -m module` with this process's arguments in a fork of the warm process.

    The fork has this process's folder, environment, input and output. It gets the signals that this
    process gets, and is killed if this process is.

    Returns:
        The exit status; None if there is no warm process, or if the job asks for another number of
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
    except OSError:
        return None

    def forward(number: int, frame: FrameType | None) -> None:
        link.sendall(bytes([number]))

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, forward)
    answer = link.recv(1)
    if not answer:
        print("error: the process that ran this job was killed", file=sys.stderr)
    return answer[0] if answer else _KILLED
