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


def run_warm(module: str) -> int | None:
    """Run `python -m module` with this process's arguments in a fork of the warm process.

    The fork has this process's folder, environment, input and output. It gets the signals that this
    process gets, and is killed if this process is.

    Returns:
        The exit status; None if the caller must run the job itself: no fork has taken it, it asks
        for another number of threads than the warm process has, or the warm process was killed
        under it, as by a system that is short of memory.
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

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    answer = b""
    with contextlib.suppress(OSError):
        answer = link.recv(2, socket.MSG_WAITALL)
    if answer[:1] == ENDED:
        return answer[1]
    for number, handler in before.items():
        signal.signal(number, handler)
    # The job's fork has died with the warm process. A job never leaves half a result, so it can
    # begin again here.
    print("the process that ran this job was killed; the job begins again", file=sys.stderr)
    return None
