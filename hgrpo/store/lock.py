"""The lock of the store: runs and their jobs share it; `gc` and `import` hold it alone."""

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from hgrpo.errors import UserError
from hgrpo.store.plan import STORE


@contextmanager
def locked(alone: bool = False) -> Iterator[None]:
    """Hold the lock during the block; it also ends with the process, even after kill -9.

    Raises:
        UserError: another process holds the lock, and one of the two must be alone.
    """
    with ExitStack() as stack:
        try:
            STORE.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context((STORE / ".lock").open("a", encoding="utf-8"))
            fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            other = "a run or one of its jobs" if alone else "`store gc` or `store import`"
            raise UserError(f"{STORE}: {other} is active; wait for its end") from None
        except OSError:  # a network file system without locks, or read-only results
            pass
        yield
