"""Runs a command: prints errors on one line, sets exit codes and handles signals."""

import argparse
import errno
import gc
import io
import os
import re
import select
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from hgrpo.errors import UserError

USER_ERROR = 2
INTERRUPTED = 130
# What a shell reports of a program that SIGPIPE ends.
READER_GONE = 141
_UNKNOWN = "unrecognized arguments: "


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are UserErrors, so that they take one line, with the nearest option."""

    def error(self, message: str) -> NoReturn:
        unknown = message.removeprefix(_UNKNOWN)
        if unknown != message and unknown.startswith("--"):
            # Imported here: commands that make no mistake start sooner without pydantic.
            from hgrpo.errors import did_you_mean

            option = re.split(r"[ =]", unknown)[0]
            known = [each for each in self._option_string_actions if each.startswith("--")]
            message = f"{option}: no such option{did_you_mean(option, known)}"
        raise UserError(message)


RERUN = "run the same command again; finished jobs and steps are kept"


def run(main: Callable[[], None], interrupted: str = RERUN) -> None:
    """Call `main`; on a UserError, OSError, SIGINT or SIGTERM print one line and exit non-zero.

    Args:
        interrupted: message printed after SIGINT or SIGTERM.
    """
    # A shell starts background jobs with SIGINT ignored, so set its handler again. Handle SIGTERM
    # too, which also stops jobs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # A stage makes millions of small objects and few reference cycles. At the default threshold,
    # garbage collection takes a tenth of the stage's time.
    gc.set_threshold(100_000, 50, 1000)
    for stream in (sys.stdout, sys.stderr):
        # Logs are UTF-8. A terminal of another encoding shows escapes for what it lacks.
        if isinstance(stream, io.TextIOWrapper):
            encoding = None if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
    try:
        main()
        # Without this, the last collection at exit takes seconds.
        gc.freeze()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(USER_ERROR)
    except KeyboardInterrupt:
        print(f"interrupted: {interrupted}", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            _end_if_unread(lost=True)
        where = f"{error.filename}: " if error.filename else ""
        full = not where and error.errno in (errno.ENOSPC, errno.EDQUOT)
        # The error does not name the disk.
        which = f" (of the output or of {os.environ.get('TMPDIR', '/tmp')})" if full else ""
        print(f"error: {where}{error.strerror or error}{which}", file=sys.stderr)
        sys.exit(USER_ERROR)
    finally:
        _end_if_unread(lost=False)


def _end_if_unread(lost: bool) -> None:
    """Write what is left for stdout; if its reader has gone, as `head` does, end silently.

    Args:
        lost: whether a pipe has broken. It may be another one than stdout, such as a server's.
    """
    try:
        sys.stdout.flush()
        if not (lost and _has_no_reader(sys.stdout.fileno())):
            return
    except BrokenPipeError:
        pass
    # Python writes once more when it ends, and would complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(READER_GONE)


def _has_no_reader(pipe: int) -> bool:
    poll = select.poll()
    poll.register(pipe, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
