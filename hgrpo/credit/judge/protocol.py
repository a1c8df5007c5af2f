"""The protocol of a judge, which gives scores for prompts, or says why it has none."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Protocol

from hgrpo.credit.judge.failures import CallError
from hgrpo.credit.judge.prompts import Prompt
from hgrpo.credit.judge.scores import Scores


@dataclass(frozen=True)
class Judgement:
    """Raw scores and the name of the model that gave them."""

    scores: Scores
    answered_by: str


Answers = Generator[tuple[str, Judgement | CallError], None, None]
"""Pairs (name of a prompt, its judgement or failure), in the order of arrival."""


class Judge(Protocol):
    """Scores the turns that prompts show."""

    def ask_all(self, prompts: Mapping[str, Prompt]) -> Answers:
        """Answer each prompt once. The caller closes the generator when it wants no more.

        Args:
            prompts: the prompts by name; each answer carries its prompt's name.

        Raises:
            UserError: the judge cannot answer at all; the remaining prompts get no answer.
        """
        ...
