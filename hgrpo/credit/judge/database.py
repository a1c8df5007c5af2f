"""The SQLite file with judges' answers and their total cost, shared by all jobs of a study.

The file uses SQLite's write-ahead log, so that readers do not wait. This works only between
processes of one machine. Jobs on several machines need one cache folder per machine, on local disk.
"""

import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from hgrpo.errors import UserError

_BUSY_S = 60.0
_TABLES = (
    """CREATE TABLE IF NOT EXISTS answers (
  key TEXT PRIMARY KEY,
  environment TEXT NOT NULL,
  variant TEXT NOT NULL,
  version TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  model TEXT NOT NULL,
  temperature REAL NOT NULL,
  answered_by TEXT NOT NULL,
  scores TEXT NOT NULL
) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS spend (
  endpoint TEXT NOT NULL,
  model TEXT NOT NULL,
  calls INTEGER NOT NULL,
  dollars REAL NOT NULL,
  PRIMARY KEY (endpoint, model)
) WITHOUT ROWID""",
)

Result = TypeVar("Result")


class Database:
    """One connection to `path`, shared by all threads; UserError if SQLite cannot use the file."""

    def __init__(self, path: Path):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._connection = self._guarded(self._open)

    def execute(self, statement: str, values: Sequence | Mapping = ()) -> list[tuple]:
        """Run one statement as one transaction and return its rows."""
        with self._lock:
            return self._guarded(lambda: self._connection.execute(statement, values).fetchall())

    def _open(self) -> sqlite3.Connection:
        # `execute` takes a lock, so threads can share the connection without Python's thread check.
        connection = sqlite3.connect(
            self.path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
        )
        # SQLite's busy timeout does not apply to a switch of the journal mode, so retry here.
        patiently = Retrying(
            retry=retry_if_exception(_is_busy),
            stop=stop_after_delay(_BUSY_S),
            wait=wait_random(0.01, 0.1),
            reraise=True,
        )
        (mode,) = patiently(lambda: connection.execute("PRAGMA journal_mode=WAL").fetchone())
        if mode != "wal":
            raise UserError(f"{self.path}: this disk cannot hold the judge's cache (mode {mode})")
        connection.execute("PRAGMA synchronous=NORMAL")
        for table in _TABLES:
            patiently(connection.execute, table)
        return connection

    def _guarded(self, work: Callable[[], Result]) -> Result:
        try:
            return work()
        except sqlite3.Error as error:
            raise UserError(f"{self.path}: the judge's cache cannot be used: {error}") from None


def _is_busy(error: BaseException) -> bool:
    busy = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
    # An extended error code holds the primary code in its low byte.
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF in busy
