"""Which actions a reply names."""

import re
from functools import lru_cache

from hgrpo.games.sokoban.level import ACTIONS

SEPARATOR = "||"
_ANSWER = re.compile(r"<answer>((?:(?!<answer>).)*?)</answer>", re.DOTALL)
_NUMBERS = {action.lower(): number for number, action in enumerate(ACTIONS)}


@lru_cache(maxsize=10_000)
def read_reply(reply: str, most: int) -> tuple[tuple[int, ...], bool]:
    """Return the actions of a reply, as indices of `ACTIONS`, and whether it is understood.

    If there is an answer block, the last one counts. Otherwise the whole reply is the answer, but a
    reply with half a block has none. Names may have any case. Blank actions do not count, and
    actions beyond the first `most` are dropped, as in RAGEN. A reply is not understood if one of
    the others is no action, or if all are blank. Its valid actions are played all the same.
    """
    blocks = _ANSWER.findall(reply)
    if not blocks and ("<answer>" in reply or "</answer>" in reply):
        return (), False
    words = [word.strip().lower() for word in (blocks[-1] if blocks else reply).split(SEPARATOR)]
    named = [word for word in words if word][:most]
    known = tuple(_NUMBERS[word] for word in named if word in _NUMBERS)
    return known, bool(known) and len(known) == len(named)


def write_reply(actions: tuple[int, ...]) -> str:
    """The reply that names these actions."""
    return f" {SEPARATOR} ".join(ACTIONS[action] for action in actions)
