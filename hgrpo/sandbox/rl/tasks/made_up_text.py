"""Text that a small language model can learn: sentences of a made-up grammar."""

import numpy as np

from hgrpo import streams

_WHO = (
    "the old miller",
    "a young fox",
    "her brother",
    "the last guest",
    "our cook",
    "a tall clerk",
)
_WHERE = ("by the river", "in the mill", "under the bridge", "at the market", "behind the barn")
_WHAT = ("a red lamp", "two apples", "the blue key", "seven coins", "a loaf of bread", "the map")
_DID = ("found", "lost", "hid", "sold", "carried", "forgot")
_WHEN = ("before dawn", "after supper", "on monday", "all winter long", "once again")


def made_up_text(sentences: int, name: str) -> str:
    """So many sentences, the same for the same `name`.

    Each picks a pattern and words. A second sentence about the same person says `there`, so that
    the text has something to remember.
    """
    numbers = streams.generator("sandbox", "text", name)
    return " ".join(_sentence(numbers) for _ in range(sentences))


def _sentence(numbers: np.random.Generator) -> str:
    who, where, what, did, when = (
        str(numbers.choice(words)) for words in (_WHO, _WHERE, _WHAT, _DID, _WHEN)
    )
    pattern = int(numbers.integers(3))
    if pattern == 0:
        return f"{who} {did} {what} {where}."
    if pattern == 1:
        return f"{when}, {who} {did} {what}."
    return f"{who} went out {when}. {where}, {who} {did} {what} there."
