"""Where the thought is in a reply."""

from collections.abc import Callable, Sequence

_OPEN, _CLOSE, _ANSWER = "<think>", "</think>", "<answer>"


def find_thought(
    reply: Sequence[int], decode: Callable[[Sequence[int]], str]
) -> tuple[int, int] | None:
    """[start, end) of the thought's tokens in a reply without its closing token; None without one.

    A thought stands between `<think>` and `</think>`. The opening tag may stand in the prompt, so a
    reply may begin with the thought; the closing tag may be missing in a reply that was cut. In a
    reply without these tags, the text before `<answer>` is a thought. A tag's tokens are no part of
    the thought, also where a token holds both. Blank text is no thought.

    Args:
        decode: the text of tokens, with special tokens as they are written.
    """
    place = _place(decode(reply))
    if place is None:
        return None
    lengths = [len(decode(reply[:count])) for count in range(len(reply) + 1)]
    start = next(count for count, length in enumerate(lengths) if length >= place[0])
    end = max(count for count, length in enumerate(lengths) if length <= place[1])
    return (start, end) if start < end else None


def _place(text: str) -> tuple[int, int] | None:
    """[start, end) of the thought's characters."""
    opened = _OPEN in text
    start = text.index(_OPEN) + len(_OPEN) if opened else 0
    ends = [text.find(mark, start) for mark in (_CLOSE, _ANSWER)]
    end = next((place for place in ends if place >= 0), len(text) if opened else 0)
    return (start, end) if text[start:end].strip() else None
