"""What a judge must know about chores: the prompt's primer and the offline rubric."""

from hgrpo.envs.chores.env import NO_EFFECT
from hgrpo.envs.environment import JudgeText, Turns


def score(goal: str, turns: Turns, completed: bool) -> list[float]:
    """Score each turn from 0 to 10: 0 without effect, the last 10 or 2 by the result, others 5.

    No text shows which place is right, so the rubric cannot know it either.
    """
    after = [observation for observation, _ in turns[1:]]
    return [5.0 * (not text.startswith(NO_EFFECT)) for text in after] + [10.0 if completed else 2.0]


JUDGE_TEXT = JudgeText(
    primer=(
        "The game is Chores in text. Each turn asks where one thing goes. Every kind of thing has "
        "one right place, the same in all games, which no answer reveals. Only some of the chores "
        "count, and the game is won if enough of these are right. A turn that puts a thing where "
        "it belongs counts for more than one that does not, and a reply without effect for least."
    ),
    score=score,
    rubric_version="chores-1",
)
