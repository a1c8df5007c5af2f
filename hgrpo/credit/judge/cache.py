"""Raw scores on disk, shared by seeds, methods and parallel jobs.

Only raw scores are kept, and only whole judgements: what depends on the return or on the group
is worked out when credit is.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from hgrpo.credit.judge.database import Database
from hgrpo.credit.judge.scores import Scores, ScoresError, check
from hgrpo.credit.judge.settings import Variant
from hgrpo.errors import UserError
from hgrpo.trajectories.trajectory import Trajectory


@dataclass(frozen=True)
class Question:
    """All that a judgement depends on.

    Attributes:
        environment: family of the environment.
        variant: what one call shows.
        version: of the prompt, and of the rubric where that answers.
        endpoint: address asked; servers that call their models alike are not one judge.
        model, temperature: as asked for.
        trajectories: what is shown, in order.
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
        """Number of turns of each trajectory."""
        return tuple(len(trajectory.turns) for trajectory in self.trajectories)

    @cached_property
    def key(self) -> str:
        """SHA-256 (hex) over every field, trajectories in full and in order."""
        content = [
            self.environment,
            self.variant,
            self.version,
            self.endpoint,
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
    """Judgements by question; `get` and `put` raise UserError when the file cannot be used."""

    def __init__(self, database: Database):
        self._database = database

    def get(self, question: Question) -> Judgement | None:
        """What is known, or None."""
        rows = self._database.execute(
            "SELECT scores, answered_by FROM answers WHERE key = ?", (question.key,)
        )
        if not rows:
            return None
        ((text, answered_by),) = rows
        try:
            scores = json.loads(text)
            check(scores, question.turns)
        except (ValueError, TypeError, ScoresError):
            raise UserError(
                f"{self._database.path}: the row with key {question.key} holds no judgement; "
                "delete it"
            ) from None
        return Judgement(scores, answered_by)

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
            question.endpoint,
            question.model,
            float(question.temperature),
            judgement.answered_by,
            json.dumps(judgement.scores),
        )
        self._database.execute(
            "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", values
        )
        return self.get(question) or judgement


def _content(trajectory: Trajectory) -> list[object]:
    return [
        trajectory.goal,
        [[turn.observation, turn.action] for turn in trajectory.turns],
        [bool(trajectory.success), float(trajectory.env_return), bool(trajectory.truncated)],
    ]
