"""The offline rubric: rules that score turns on machines without a language model.

The rubric reads the prompt that a language model would read, and nothing else. Each environment
has its own rules (`JudgeText.score`). Scores are absolute, so they compare across a group's
trajectories.
"""

import json
import math
from collections.abc import Sequence

from hgrpo.credit.judge.record import Record
from hgrpo.envs.environment import JudgeText
from hgrpo.errors import UserError

MODEL = "offline-rubric"
_BYTES_PER_TOKEN = 4


def judge(text: JudgeText, goal: str, records: Sequence[Record]) -> list[list[float]]:
    """Scores of every turn of every trajectory that `record.read` finds in a prompt.

    Raises:
        UserError: the environment has no rubric.
    """
    if text.score is None:
        raise UserError("this environment has no offline rubric")
    return [text.score(goal, record.turns, record.completed) for record in records]


def answer(scores: Sequence[Sequence[float]], variant: str) -> str:
    """The JSON text that a language model would answer, as `prompts.answer_format` asks for."""
    lists = [[{"turn": i, "score": s} for i, s in enumerate(row)] for row in scores]
    if variant == "trajectory":
        (only,) = lists
        return json.dumps({"scores": only})
    entries = [{"trajectory": k, "scores": row} for k, row in enumerate(lists)]
    return json.dumps({"trajectories": entries})


def count_tokens(*texts: str) -> int:
    """Tokens as the rubric counts them: UTF-8 bytes / 4, rounded up."""
    return math.ceil(sum(len(text.encode()) for text in texts) / _BYTES_PER_TOKEN)
