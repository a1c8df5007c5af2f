"""Locates the thought in a reply."""

from collections.abc import Callable, Sequence

_OPEN, _CLOSE, _ANSWER = "<think>", "</think>", "<answer>"


def find_thought(
    reply: Sequence[int], decode: Callable[[Sequence[int]], str]
) -> tuple[int, int] | None:
    """Token range [start, end) of the thought in a reply; None if it has no thought.

    A thought is enclosed in `<think>` and `</think>`. The opening tag may be part of the prompt,
    and the closing tag may be missing in a truncated reply. Without these tags, the text before
    `<answer>` is the thought. Tokens that overlap a tag are excluded. Blank text does not count as
    a thought.

    Args:
        reply: tokens without the closing token.
        decode: decodes tokens, including special tokens.
    """
    place = _place(decode(reply))
    if place is None:
        return None
    lengths = [len(decode(reply[:count])) for count in range(len(reply) + 1)]
    start = next(count for count, length in enumerate(lengths) if length >= place[0])
    end = max(count for count, length in enumerate(lengths) if length <= place[1])
    return (start, end) if start < end else None


def _place(text: str) -> tuple[int, int] | None:
    opened = _OPEN in text
    start = text.index(_OPEN) + len(_OPEN) if opened else 0
    ends = [text.find(mark, start) for mark in (_CLOSE, _ANSWER)]
    end = next((place for place in ends if place >= 0), len(text) if opened else 0)
    return (start, end) if text[start:end].strip() else None
