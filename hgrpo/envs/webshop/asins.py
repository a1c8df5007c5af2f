"""Product identifiers that are easy to tell apart and to spell: "B0" and syllables in capitals."""

import math
from collections.abc import Iterator
from itertools import count

from hgrpo import streams

SYLLABLES = tuple(consonant + vowel for consonant in "BDFGHJKLMNPRSTVWZ" for vowel in "AEIOU")


def asins(products: int, seed: int) -> Iterator[str]:
    """Yield a distinct identifier per product, of as few syllables as suffice, at least two.

    With S syllables to choose from, the first one of the i-th identifier is i mod S, shuffled. So
    any S consecutive identifiers differ in their first syllable. The others are the n digits, to
    base S, of (a (i div S) + b + c (i mod S)) mod S^n. This map is one-to-one since a is coprime to
    S.
    """
    size = len(SYLLABLES)
    tail = next(n for n in count(1) if size ** (n + 1) >= products)
    codes = size**tail
    rng = streams.generator("webshop-asin", seed)
    first = rng.permutation(size).tolist()
    a, b, c = rng.integers(1, codes, size=3).tolist()
    a = next(number for number in count(a) if math.gcd(number, size) == 1)
    for i in range(products):
        code = (a * (i // size) + b + c * (i % size)) % codes
        digits = [code // size**place % size for place in range(tail)]
        yield "B0" + "".join(SYLLABLES[digit] for digit in (first[i % size], *digits))
