"""The protocol of a judge, which gives scores for prompts, or says why it has none."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Protocol

from hgrpo.credit.judge.prompts import Prompt

# Why a call failed. `rejected`: no retry would help (the prompt is too long, for example).
CALL_FAILURES = (
    *("rate_limit", "quota", "timeout", "connection", "server", "rejected"),
    *("malformed", "wrong_length", "out_of_range"),
)
# Why a trajectory got uniform credit: its last call failed, or a cap was reached.
FALLBACKS = (*CALL_FAILURES, "call_cap", "dollar_cap")

Scores = list[list[float]]
"""Raw scores in 0..10: one list per trajectory in the call, one number per turn."""


class CallError(Exception):
    """A call without a judgement.

    `reason` is one of `FALLBACKS`; `retry_after` the seconds the server asked to wait, or 0.
    """

    def __init__(self, reason: str, message: str = "", retry_after: float = 0.0):
        super().__init__(message or reason)
        self.reason = reason
        self.retry_after = retry_after


@dataclass(frozen=True)
class Judgement:
    """Raw scores and the name of the model that gave them."""

    scores: Scores
    answered_by: str


@dataclass(frozen=True)
class Usage:
    """Tokens of one answer, as the judge reports them."""

    input_tokens: int
    output_tokens: int


Answers = Generator[tuple[str, Judgement | CallError], None, None]
"""Pairs (name of a prompt, its judgement or failure), in the order of arrival."""


class Judge(Protocol):
    """Scores the turns that prompts show."""

    def ask_all(self, prompts: Mapping[str, Prompt]) -> Answers:
        """Answer each prompt once, under its name. The caller closes the generator.

        UserError if the judge cannot answer at all; the remaining prompts get no answer.
        """
        ...
