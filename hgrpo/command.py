"""Run a command with one-line error messages, exit codes and signal handlers."""

import argparse
import errno
import gc
import io
import os
import select
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from hgrpo.errors import UserError

USER_ERROR = 2
INTERRUPTED = 130
# Exit status of a program killed by SIGPIPE.
READER_GONE = 141


class OneLineParser(argparse.ArgumentParser):
    """A parser that raises a UserError if an argument is invalid."""

    def error(self, message: str) -> NoReturn:
        raise UserError(message)


RERUN = "run the same command again; finished jobs and steps are kept"


def run(main: Callable[[], None], interrupted: str = RERUN) -> None:
    """Call `main`; on a UserError, OSError, SIGINT or SIGTERM print one line and exit non-zero.

    Args:
        interrupted: message printed after SIGINT or SIGTERM.
    """
    # Restore the SIGINT handler, because shells start background jobs with SIGINT ignored. Use the
    # same handler for SIGTERM, which schedulers send to stop jobs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # A stage creates millions of small objects but few reference cycles. With the default
    # thresholds, garbage collection would take a tenth of the stage's time.
    gc.set_threshold(100_000, 50, 1000)
    for stream in (sys.stdout, sys.stderr):
        # Write logs in UTF-8. If a terminal cannot display a character, write an escape sequence.
        if isinstance(stream, io.TextIOWrapper):
            encoding = None if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
    try:
        main()
        sys.stdout.flush()
        # Skip the garbage collection at exit, which takes seconds.
        gc.freeze()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(USER_ERROR)
    except KeyboardInterrupt:
        print(f"interrupted: {interrupted}", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except OSError as error:
        if isinstance(error, BrokenPipeError) and _has_no_reader(sys.stdout.fileno()):
            # Redirect stdout. Otherwise, flushing it at exit would raise BrokenPipeError again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(READER_GONE)
        where = f"{error.filename}: " if error.filename else ""
        full = not where and error.errno in (errno.ENOSPC, errno.EDQUOT)
        # This error does not include a path.
        which = f" (of the output or of {os.environ.get('TMPDIR', '/tmp')})" if full else ""
        print(f"error: {where}{error.strerror or error}{which}", file=sys.stderr)
        sys.exit(USER_ERROR)


def _has_no_reader(pipe: int) -> bool:
    """Whether the reader of a pipe, such as `head`, has exited."""
    poll = select.poll()
    poll.register(pipe, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
