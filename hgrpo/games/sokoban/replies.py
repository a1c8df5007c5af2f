"""Parses the actions in a reply."""

import re
from functools import lru_cache

from hgrpo.games.sokoban.level import ACTIONS

SEPARATOR = "||"
_ANSWER = re.compile(r"<answer>((?:(?!<answer>).)*?)</answer>", re.DOTALL)
_NUMBERS = {action.lower(): number for number, action in enumerate(ACTIONS)}


@lru_cache(maxsize=10_000)
def read_reply(reply: str, most: int) -> tuple[tuple[int, ...], bool]:
    """Return the actions in a reply, as indices of `ACTIONS`, and whether the reply is valid.

    The answer is the last answer block, or the whole reply if it contains no block; a reply with an
    incomplete block has no answer. Case is ignored. Blank actions, and actions beyond the first
    `most`, are dropped as in RAGEN. A reply is invalid if one of the remaining actions is unknown,
    or if all are blank; its valid actions are still executed.
    """
    blocks = _ANSWER.findall(reply)
    if not blocks and ("<answer>" in reply or "</answer>" in reply):
        return (), False
    words = [word.strip().lower() for word in (blocks[-1] if blocks else reply).split(SEPARATOR)]
    named = [word for word in words if word][:most]
    known = tuple(_NUMBERS[word] for word in named if word in _NUMBERS)
    return known, bool(known) and len(known) == len(named)


def write_reply(actions: tuple[int, ...]) -> str:
    """Format actions as a reply."""
    return f" {SEPARATOR} ".join(ACTIONS[action] for action in actions)
