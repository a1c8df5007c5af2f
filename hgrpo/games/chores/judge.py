"""What a judge must know about chores: the primer, and a rubric that cannot know right places."""

from hgrpo.games.chores.env import NO_EFFECT
from hgrpo.games.environment import JudgeText, Turns


def score(goal: str, turns: Turns, completed: bool) -> list[float]:
    """Score each turn: 5, without effect 0, and the last 10 or 2 by the result."""
    last = 10.0 if completed else 2.0
    return [*(5.0 * (not text.startswith(NO_EFFECT)) for text, _ in turns[1:]), last]


JUDGE_TEXT = JudgeText(
    "The game is Chores in text. Each turn asks where one thing goes. Every kind of thing has one "
    "right place, the same in all games, which no answer reveals. Only some of the chores count, "
    "and the game is won if enough of these are right. A reply without effect counts for least.",
    score,
    rubric_version="chores-1",
)
