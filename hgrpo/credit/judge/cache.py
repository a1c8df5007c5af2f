"""Raw scores on disk, shared by seeds, methods and parallel jobs.

One SQLite file in write-ahead-log mode: readers do not wait for the writer, and writers wait for
each other. That mode needs all processes on one machine; jobs on several machines want a cache
folder each, on a local disk.

Only raw scores are kept, and only whole judgements: what depends on the return or on the group
is worked out when credit is.
"""

import hashlib
import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from hgrpo.agent.trajectory import Trajectory
from hgrpo.credit.judge.scores import Scores, ScoresError, check
from hgrpo.credit.judge.settings import Variant
from hgrpo.errors import UserError

_BUSY_S = 60.0
_TABLE = """CREATE TABLE IF NOT EXISTS judgements (
  key TEXT PRIMARY KEY,
  environment TEXT NOT NULL,
  variant TEXT NOT NULL,
  version TEXT NOT NULL,
  model TEXT NOT NULL,
  temperature REAL NOT NULL,
  answered_by TEXT NOT NULL,
  scores TEXT NOT NULL
) WITHOUT ROWID"""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Question:
    """All that a judgement depends on; `version` is the prompt's (and the rubric's)."""

    environment: str
    variant: Variant
    version: str
    model: str
    temperature: float
    trajectories: tuple[Trajectory, ...]

    @property
    def turns(self) -> tuple[int, ...]:
        """Number of turns of each trajectory."""
        return tuple(len(trajectory.turns) for trajectory in self.trajectories)

    @cached_property
    def key(self) -> str:
        """SHA-256 (hex) over every field, trajectories in full and in order."""
        content = [
            self.environment,
            self.variant,
            self.version,
            self.model,
            float(self.temperature),
            [_content(trajectory) for trajectory in self.trajectories],
        ]
        return hashlib.sha256(json.dumps(content).encode("ascii")).hexdigest()


@dataclass(frozen=True)
class Judgement:
    """Raw scores and the name of the model that gave them."""

    scores: Scores
    answered_by: str


class ScoreCache:
    """Judgements by question, in the file `path`.

    Raises:
        UserError: the file cannot be used; also from `get` and `put`.
    """

    def __init__(self, path: Path):
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._database = self._guarded(self._open)

    def get(self, question: Question) -> Judgement | None:
        """What is known, or None."""
        row = self._guarded(
            lambda: self._database.execute(
                "SELECT scores, answered_by FROM judgements WHERE key = ?", (question.key,)
            ).fetchone()
        )
        if row is None:
            return None
        try:
            scores = json.loads(row[0])
            check(scores, question.turns)
        except (ValueError, TypeError, ScoresError):
            raise UserError(
                f"{self._path}: the row with key {question.key} holds no judgement; delete it"
            ) from None
        return Judgement(scores, row[1])

    def put(self, question: Question, judgement: Judgement) -> Judgement:
        """Keep a judgement; returns the one in the cache, which is another job's if that was first.

        Raises:
            ScoresError: the scores are not whole; nothing is kept.
        """
        check(judgement.scores, question.turns)
        values = (
            question.key,
            question.environment,
            question.variant,
            question.version,
            question.model,
            float(question.temperature),
            judgement.answered_by,
            json.dumps(judgement.scores),
        )
        self._guarded(
            lambda: self._database.execute(
                "INSERT INTO judgements VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                values,
            )
        )
        return self.get(question) or judgement

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _open(self) -> sqlite3.Connection:
        # One statement is one transaction: there is nothing to roll back.
        database = sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None)
        # The busy timeout does not cover the switch of the journal mode.
        patiently = Retrying(
            retry=retry_if_exception(_is_busy),
            stop=stop_after_delay(_BUSY_S),
            wait=wait_random(0.01, 0.1),
            reraise=True,
        )
        (mode,) = patiently(lambda: database.execute("PRAGMA journal_mode=WAL").fetchone())
        if mode != "wal":
            raise UserError(f"{self._path}: this disk cannot hold the judge's cache (mode {mode})")
        database.execute("PRAGMA synchronous=NORMAL")
        patiently(lambda: database.execute(_TABLE))
        return database

    def _guarded(self, work: Callable[[], Result]) -> Result:
        try:
            return work()
        except sqlite3.Error as error:
            raise UserError(f"{self._path}: the judge's cache cannot be used: {error}") from None


def _is_busy(error: BaseException) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _content(trajectory: Trajectory) -> list[object]:
    return [
        trajectory.goal,
        [[turn.observation, turn.action] for turn in trajectory.turns],
        [bool(trajectory.success), float(trajectory.env_return), bool(trajectory.truncated)],
    ]
