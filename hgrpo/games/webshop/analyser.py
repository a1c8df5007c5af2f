"""Reimplements Lucene's English analyser, with which the official search extracts terms from text.

As in pyserini, text is split into words (StandardTokenizer), possessive 's and stop words are
removed, and words are lowercased and stemmed (Porter). Word boundaries follow Unicode (UAX #29). As
in Lucene, each ideograph, hiragana character and emoji (including ® and ™) is a word. A run of
characters in a South-East Asian script is also one word.

Results match Lucene 8.11, except for characters newer than Unicode 9, Hebrew words before a closing
quotation mark, joiners before an emoji, words that end in -yyed or -yying, and words of more than
255 code points.
"""

import re
from functools import lru_cache

import regex
import Stemmer

_LONGEST = 255

# Character classes by the Word_Break property. Punctuation follows Unicode 9, as in Lucene 8.
_LETTER = r"[\p{WB=ALetter}\p{WB=Hebrew_Letter}&&\p{Alphabetic}\u05F3]"
_DIGIT = r"\p{WB=Numeric}"
_KATAKANA = r"\p{WB=Katakana}"
_JOINER = r"\p{WB=ExtendNumLet}"  # underscore and similar characters
_MARK = r"[\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]"  # attaches to the previous character
_IN_BOTH = r".'\u2018\u2019\u2024\uFE52\uFF07\uFF0E"
_IN_LETTERS = rf"[{_IN_BOTH}:\u00B7\u02D7\u0387\u05F4\u2027\uFE13\uFE55\uFF1A]"
_IN_DIGITS = (
    rf"[{_IN_BOTH},;\u037E\u0589\u060C\u060D\u066C\u07F8\u2044\uFE10\uFE14\uFE50\uFE54\uFF0C\uFF1B]"
)
# Pictographs in version 11 of the emoji standard; later versions removed some, such as ★ and ♡.
_PICTOGRAPH = (
    r"[\p{Extended_Pictographic}\u2388\u2605\u2607-\u2612\u2614-\u2685\u2690-\u2705\u2708-\u2712"
    r"\u2765-\u2767\U0001F000-\U0001F0FF\U0001F300-\U0001F64F\U0001F680-\U0001F6FF]"
)
_FLAG_HALF = r"[\U0001F1E6-\U0001F1FF]"


def _run(kind: str) -> str:
    """Return a pattern for one or more characters of a class, with the marks attached to them."""
    return rf"{kind}(?:{kind}|{_MARK})*+"


_LETTERS = rf"{_run(_LETTER)}(?:{_IN_LETTERS}{_MARK}*+{_run(_LETTER)})*+"  # don't, o'neill, u.s.a
_DIGITS = rf"{_run(_DIGIT)}(?:{_IN_DIGITS}{_MARK}*+{_run(_DIGIT)})*+"  # 3.5, 1,000
_PART = rf"(?:{_run(_KATAKANA)}|(?:{_LETTERS}|{_DIGITS})++)"
_WORD = regex.compile(
    rf"((?:{_run(_JOINER)})?+{_PART}(?:{_run(_JOINER)}{_PART})*+(?:{_run(_JOINER)})?+"
    # A zero-width joiner combines the pictographs before and after it into one emoji.
    rf"|{_PICTOGRAPH}{_MARK}*+(?:(?<=\u200D){_PICTOGRAPH}{_MARK}*+)*+"
    rf"|{_FLAG_HALF}{_MARK}*+{_FLAG_HALF}{_MARK}*+"
    rf"|[#*]{_MARK}*?\u20E3{_MARK}*+"
    rf"|(?:\p{{LB=SA}}{_MARK}*+)++"
    rf"|[\p{{Script=Han}}\p{{Script=Hiragana}}]{_MARK}*+)"
    # A run of joiners is not a word. Without this branch, long runs would take quadratic time.
    rf"|{_run(_JOINER)}",
    regex.VERSION1,
)

_STOPPED = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with"
)
STOP_WORDS = frozenset(_STOPPED.split())
_POSSESSIVES = ("'s", "\u2019s", "\uff07s")

# The stemmer's own cache is off, because `_terms` is cached.
_PORTER = Stemmer.Stemmer("porter", maxCacheSize=0)
# Lucene and PyStemmer return different stems for words with the endings below. To obtain Lucene's
# stem, `stem` first replaces these endings. The first two patterns require a vowel and then a
# consonant before the ending. A y after a consonant counts as a vowel.
_SYLLABLE = r".*(?:[aeiou][^aeiou]|[^aeiou]y[^aeiou]).*"
_FORMS = r"(?:i|y|is|ys|ies|[iy](?:ed|ing)s?)"  # endings that Porter's first steps reduce to -i
_VARIANTS = (
    (re.compile(rf"({_SYLLABLE}bl){_FORMS}"), r"\1e"),
    (re.compile(rf"({_SYLLABLE}log){_FORMS}"), r"\1"),
    # Before -ed and -ing, Lucene reduces all double consonants except l, s and z to single ones.
    # PyStemmer does this only for b, d, f, g, m, n, p, r and t.
    (re.compile(r"(.*(?:[aeiou]|[^aeiou]y).*([^aeiouybdfgmnprtlsz]))\2(?:ed|ing)s?"), r"\1"),
)


def analyse(text: str) -> list[str]:
    """Extract the terms of a text, in order and with repetitions."""
    # No word contains a space, so the text is split at spaces, and `_terms` can cache each part.
    return [term for word in text.split(" ") for term in _terms(word)]


@lru_cache(maxsize=1 << 17)
def _terms(text: str) -> tuple[str, ...]:
    terms = []
    for word in _WORD.findall(text):
        for piece in [word] if len(word) <= _LONGEST else _pieces(word):
            lower = piece.lower() if piece.isascii() else _lower(piece)
            lower = lower[:-2] if lower.endswith(_POSSESSIVES) else lower
            if lower and lower not in STOP_WORDS:
                terms.append(stem(lower))
    return tuple(terms)


def _pieces(word: str) -> list[str]:
    """Split a long word into words of at most 255 characters, as Lucene does."""
    pieces, start = [], 0
    while start < len(word):
        match = _WORD.match(word, start, start + _LONGEST)
        if match and match[1]:
            pieces.append(match[1])
        start = match.end() if match else start + 1
    return pieces


def _lower(word: str) -> str:
    return "".join(char.lower()[0] for char in word)


def stem(word: str) -> str:
    """Return the stem of a lower-case word, as computed by Lucene's Porter stemmer.

    The algorithm is that of Porter, "An algorithm for suffix stripping" (1980,
    https://tartarus.org/martin/PorterStemmer/), with four differences: Words of one or two letters
    are unchanged. -bli becomes -ble (assembly matches assemble). -logi becomes -log (technology
    matches technological). All double consonants except l, s and z are reduced before -ed and -ing
    (trekking matches trek).
    """
    if len(word) <= 2:
        return word
    for pattern, base in _VARIANTS:
        if match := pattern.fullmatch(word):
            return _PORTER.stemWord(match.expand(base))
    return _PORTER.stemWord(word)
