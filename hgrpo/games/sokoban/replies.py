"""Parses and formats replies, which contain one or more actions."""

import re
from functools import lru_cache

from hgrpo.games.sokoban.level import ACTIONS

SEPARATOR = "||"
_ANSWER = re.compile(r"<answer>((?:(?!<answer>).)*?)</answer>", re.DOTALL)
_NUMBERS = {action.lower(): number for number, action in enumerate(ACTIONS)}


@lru_cache(maxsize=10_000)
def read_reply(reply: str, most: int) -> tuple[tuple[int, ...], bool]:
    """Return the actions in a reply, as indices of `ACTIONS`, and whether the reply is valid.

    Actions are read from the last answer block, or from the whole reply if it contains no tag. A
    reply with tags but without a complete block has no actions. Case is ignored. As in RAGEN, blank
    actions are dropped, and only the first `most` actions are kept. A reply is invalid if it has no
    actions or if a kept action is unknown. The known actions of an invalid reply are executed.
    """
    blocks = _ANSWER.findall(reply)
    if not blocks and ("<answer>" in reply or "</answer>" in reply):
        return (), False
    words = [word.strip().lower() for word in (blocks[-1] if blocks else reply).split(SEPARATOR)]
    named = [word for word in words if word][:most]
    known = tuple(_NUMBERS[word] for word in named if word in _NUMBERS)
    return known, bool(known) and len(known) == len(named)


def write_reply(actions: tuple[int, ...]) -> str:
    """Format actions (indices of `ACTIONS`) as a reply."""
    return f" {SEPARATOR} ".join(ACTIONS[action] for action in actions)
