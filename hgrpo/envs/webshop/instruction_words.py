"""Splits text into words, and lists words that say nothing about a product."""

import re

_WORD = re.compile(r"[a-z0-9][a-z0-9.%-]*")
_WORDS = """
    a an and any are at buy can color find for get give good have i in is it like looking me
    my need of on one please recommend search show size some that the them this to want which
    with would you
"""
PLAIN = frozenset(_WORDS.split())


def words(text: str) -> list[str]:
    """Words of a lower-case text, in order."""
    return _WORD.findall(text)
