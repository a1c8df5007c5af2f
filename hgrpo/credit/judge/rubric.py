"""Offline rubric: rules that score turns without a language model.

The rubric gets the same prompt as a language model. Each environment defines its rules in
`JudgeText.score`. The rules score each trajectory independently, so that the scores of a group's
trajectories are comparable.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hgrpo.credit.judge.protocol import Answers, CallError, Judgement, Prompt, Scores, Usage
from hgrpo.credit.judge.scores import check
from hgrpo.credit.judge.settings import RUBRIC
from hgrpo.errors import UserError
from hgrpo.games.environment import JudgeText

if TYPE_CHECKING:
    # Imported only for type checking, because the judge server must not require tenacity.
    from hgrpo.credit.judge.accounting import Account

_BYTES_PER_TOKEN = 4


class RubricJudge:
    """A `protocol.Judge` that runs an environment's rubric in this process.

    Calls and tokens are counted in the same way as those of a paid judge.
    """

    def __init__(self, text: JudgeText, account: "Account"):
        self._text = text
        self._account = account

    def ask_all(self, prompts: Mapping[str, Prompt]) -> Answers:
        """Yield answers in order; UserError if the rules omit a turn or a score is not in 0..10."""
        for name, prompt in prompts.items():
            try:
                yield name, self._ask(prompt)
            except CallError as cap:
                yield name, cap

    def _ask(self, prompt: Prompt) -> Judgement:
        aside = self._account.begin(prompt, retry=False)
        environment, goal, records = read(prompt.user)
        scores = judge(self._text, goal, records)
        try:
            check(scores, prompt.turns)
        except CallError as error:
            raise UserError(
                f"the offline rubric of environment {environment!r}: {error}; see `score` in "
                f"hgrpo/games/{environment}/judge.py"
            ) from None
        size = count_tokens(*(message["content"] for message in prompt.messages))
        answer_size = count_tokens(answer(scores, prompt.variant))
        self._account.answered(aside, Usage(size, answer_size))
        return Judgement(scores, RUBRIC)


@dataclass
class Record:
    """A trajectory in a prompt: for every turn, a pair (observation, action)."""

    turns: list[tuple[str, str]] = field(default_factory=list)
    completed: bool = False


def read(message: str) -> tuple[str, str, list[Record]]:
    """Return the environment, the goal and the trajectories in a judge's user message."""
    lines = [json.loads(line) for line in message.split("\n") if line.startswith("{")]
    records: list[Record] = []
    for line in lines[1:]:
        if line["trajectory"] == len(records):
            records.append(Record())
        record = records[line["trajectory"]]
        if "outcome" in line:
            record.completed = line["outcome"]["success"]
        else:
            record.turns.append((line["observation"], line["action"]))
    return lines[0]["environment"], lines[0]["goal"], records


def judge(text: JudgeText, goal: str, records: Sequence[Record]) -> Scores:
    """Score every turn of every trajectory; the environment must have a rubric."""
    return [text.score(goal, record.turns, record.completed) for record in records]


def answer(scores: Scores, variant: str) -> str:
    """Return the scores as JSON text in the format of `protocol.answer_format`."""
    lists = [[{"turn": i, "score": s} for i, s in enumerate(row)] for row in scores]
    if variant == "trajectory":
        (only,) = lists
        return json.dumps({"scores": only})
    entries = [{"trajectory": k, "scores": row} for k, row in enumerate(lists)]
    return json.dumps({"trajectories": entries})


def count_tokens(*texts: str) -> int:
    """Estimate the number of tokens: UTF-8 bytes / 4, rounded up."""
    return math.ceil(sum(len(text.encode()) for text in texts) / _BYTES_PER_TOKEN)
