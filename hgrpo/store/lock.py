"""The lock of the store: runs and their jobs share it; `gc` and `import` hold it alone."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from hgrpo.errors import UserError
from hgrpo.store.plan import STORE


@contextmanager
def locked(alone: bool = False) -> Iterator[None]:
    """Hold the lock during the block; it also ends with the process, even after kill -9.

    On a file system without locks, there is no protection.

    Raises:
        UserError: another process holds the lock, and one of the two must be alone.
    """
    STORE.mkdir(parents=True, exist_ok=True)
    with (STORE / ".lock").open("a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            other = "a run or one of its jobs" if alone else "`store gc` or `store import`"
            raise UserError(f"{STORE}: {other} is active; wait for its end") from None
        except OSError:  # network file systems may lack locks
            pass
        yield
