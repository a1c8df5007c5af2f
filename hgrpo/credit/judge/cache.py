"""SQLite cache of judges' answers and of total costs, shared by all jobs of a study.

The cache stores raw scores, because credit also depends on the return and on the group. The file
uses SQLite's write-ahead log, so that readers do not block. This requires that all processes run on
the same machine. Each machine must therefore have its own cache folder on a local disk.
"""

import hashlib
import json
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from hgrpo.credit.judge.protocol import Judgement
from hgrpo.credit.judge.scores import check
from hgrpo.credit.judge.settings import Variant
from hgrpo.errors import UserError
from hgrpo.trajectories.trajectory import Trajectory

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
    """A connection to the cache file at `path`, shared by all threads.

    All methods raise UserError if SQLite cannot use the file.
    """

    def __init__(self, path: Path):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._connection = self._guarded(self._open)

    def execute(self, statement: str, values: Sequence | Mapping = ()) -> list[tuple]:
        """Run one statement as one transaction and return its rows."""
        with self._lock:
            return self._guarded(lambda: self._connection.execute(statement, values).fetchall())

    def get(self, question: "Question") -> Judgement | None:
        """The stored judgement of a question, or None."""
        query = "SELECT scores, answered_by FROM answers WHERE key = ?"
        for scores, answered_by in self.execute(query, (question.key,)):
            return Judgement(json.loads(scores), answered_by)
        return None

    def put(self, question: "Question", judgement: Judgement) -> Judgement:
        """Store a judgement unless another job has stored one; return the stored judgement.

        Raises CallError unless every turn has exactly one valid score.
        """
        check(judgement.scores, question.turns)
        self.execute(
            "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (question.key, *question.judge, judgement.answered_by, json.dumps(judgement.scores)),
        )
        return self.get(question) or judgement

    def _open(self) -> sqlite3.Connection:
        # `execute` holds a lock, so sharing the connection between threads is safe.
        connection = sqlite3.connect(
            self.path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
        )
        # Retry, because SQLite's busy timeout does not apply when the journal mode is changed.
        patiently = Retrying(
            retry=retry_if_exception(_is_busy),
            stop=stop_after_delay(_BUSY_S),
            wait=wait_random(0.01, 0.1),
            reraise=True,
        )
        (mode,) = patiently(lambda: connection.execute("PRAGMA journal_mode=WAL").fetchone())
        if mode != "wal":
            raise UserError(
                f"{self.path}: this disk does not support SQLite's write-ahead log (mode {mode}); "
                "use a cache folder on a local disk"
            )
        connection.execute("PRAGMA synchronous=NORMAL")
        for table in _TABLES:
            patiently(connection.execute, table)
        return connection

    def _guarded(self, work: Callable[[], Result]) -> Result:
        try:
            return work()
        except sqlite3.Error as error:
            raise UserError(f"{self.path}: cannot use the judge's cache: {error}") from None


def _is_busy(error: BaseException) -> bool:
    busy = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
    # The low byte of an extended error code is the primary error code.
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF in busy


@dataclass(frozen=True)
class Question:
    """All inputs of a judgement.

    Attributes:
        version: version of the prompt and of the environment's primer; for the offline rubric, also
            of its rules.
        endpoint: the judge's `base_url`. It is included because servers may use one name for
            different models.
        trajectories: the trajectories in the prompt, in order.
    """

    environment: str
    variant: Variant
    version: str
    endpoint: str
    model: str
    temperature: float
    trajectories: tuple[Trajectory, ...]

    @property
    def turns(self) -> tuple[int, ...]:
        return tuple(len(trajectory.turns) for trajectory in self.trajectories)

    @property
    def judge(self) -> tuple[object, ...]:
        """The fields that identify the judge, i.e. all fields except for the trajectories."""
        prompt = self.environment, self.variant, self.version
        return *prompt, self.endpoint, self.model, float(self.temperature)

    @cached_property
    def key(self) -> str:
        """SHA-256 (hex) of all fields. Of a trajectory, only the data in the prompt is hashed."""
        content = [*self.judge, [_content(trajectory) for trajectory in self.trajectories]]
        return hashlib.sha256(json.dumps(content).encode("ascii")).hexdigest()


def _content(trajectory: Trajectory) -> list[object]:
    return [
        trajectory.goal,
        [[turn.observation, turn.action] for turn in trajectory.turns],
        [bool(trajectory.success), float(trajectory.env_return), bool(trajectory.truncated)],
    ]
