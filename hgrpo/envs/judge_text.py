"""What a judge must know about one environment."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Turns = Sequence[tuple[str, str]]
"""(observation, action) of every turn of one trajectory."""

Score = Callable[[str, Turns, bool], list[float]]
"""An offline rubric: (goal, turns, whether the task was completed) -> one score in 0..10 a turn."""


@dataclass(frozen=True)
class JudgeText:
    """An environment's part of a judge: the text of the prompt and the rules of the rubric.

    Attributes:
        primer: the prompt's opening: what the game is and which turns count for more.
        score: the offline rubric; None if only language models can judge this environment.
        rubric_version: part of the cache's key for the offline rubric. Change it when a score
            changes, or the cache returns scores of the old rules.
        primer_version: part of the cache's key for every judge. Change it with the primer.
    """

    primer: str
    score: Score | None = None
    rubric_version: str = ""
    primer_version: str = ""
