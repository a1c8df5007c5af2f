"""Lucene's English analyser: how the official search turns text into terms.

The steps are pyserini's: split into words (StandardTokenizer), drop possessive 's, lower the case,
drop stop words, take Porter stems. Unicode's rules (UAX #29) say where words end. As in Lucene,
each of these is also a word: an ideograph, a hiragana character, a run of a South-East Asian
script, an emoji (also ® and ™).

This module was compared with Lucene 8.11. It gives other terms for characters newer than Unicode 9,
a Hebrew word before a closing quotation mark, joiners before an emoji, words that end in -yyed or
-yying, and words of more than 255 code points. English text contains none of these.
"""

import re
from functools import lru_cache

import regex
import Stemmer

_LONGEST = 255

# Classes of characters by Word_Break property. Punctuation is listed as in Unicode 9 and Lucene 8.
_LETTER = r"[\p{WB=ALetter}\p{WB=Hebrew_Letter}&&\p{Alphabetic}\u05F3]"
_DIGIT = r"\p{WB=Numeric}"
_KATAKANA = r"\p{WB=Katakana}"
_JOINER = r"\p{WB=ExtendNumLet}"  # the underscore and similar characters
_MARK = r"[\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]"  # belongs to the character before it
_IN_BOTH = r".'\u2018\u2019\u2024\uFE52\uFF07\uFF0E"
_IN_LETTERS = rf"[{_IN_BOTH}:\u00B7\u02D7\u0387\u05F4\u2027\uFE13\uFE55\uFF1A]"
_IN_DIGITS = (
    rf"[{_IN_BOTH},;\u037E\u0589\u060C\u060D\u066C\u07F8\u2044\uFE10\uFE14\uFE50\uFE54\uFF0C\uFF1B]"
)
# Pictographs of emoji 11; later versions removed some of them, such as ★ and ♡.
_PICTOGRAPH = (
    r"[\p{Extended_Pictographic}\u2388\u2605\u2607-\u2612\u2614-\u2685\u2690-\u2705\u2708-\u2712"
    r"\u2765-\u2767\U0001F000-\U0001F0FF\U0001F300-\U0001F64F\U0001F680-\U0001F6FF]"
)
_FLAG_HALF = r"[\U0001F1E6-\U0001F1FF]"


def _run(kind: str) -> str:
    """A pattern for one or more characters of a kind, each with its marks."""
    return rf"{kind}(?:{kind}|{_MARK})*+"


_LETTERS = rf"{_run(_LETTER)}(?:{_IN_LETTERS}{_MARK}*+{_run(_LETTER)})*+"  # don't, o'neill, u.s.a
_DIGITS = rf"{_run(_DIGIT)}(?:{_IN_DIGITS}{_MARK}*+{_run(_DIGIT)})*+"  # 3.5, 1,000
_PART = rf"(?:{_run(_KATAKANA)}|(?:{_LETTERS}|{_DIGITS})++)"
_WORD = regex.compile(
    rf"((?:{_run(_JOINER)})?+{_PART}(?:{_run(_JOINER)}{_PART})*+(?:{_run(_JOINER)})?+"
    # After a zero-width joiner another pictograph belongs to the same emoji.
    rf"|{_PICTOGRAPH}{_MARK}*+(?:(?<=\u200D){_PICTOGRAPH}{_MARK}*+)*+"
    rf"|{_FLAG_HALF}{_MARK}*+{_FLAG_HALF}{_MARK}*+"
    rf"|[#*]{_MARK}*?\u20E3{_MARK}*+"
    rf"|(?:\p{{LB=SA}}{_MARK}*+)++"
    rf"|[\p{{Script=Han}}\p{{Script=Hiragana}}]{_MARK}*+)"
    # Joiners alone are not a word. Without this branch, long runs take quadratic time.
    rf"|{_run(_JOINER)}",
    regex.VERSION1,
)

_STOPPED = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with"
)
STOP_WORDS = frozenset(_STOPPED.split())
_POSSESSIVES = ("'s", "\u2019s", "\uff07s")

# The stemmer needs no cache, because `_terms` caches.
_PORTER = Stemmer.Stemmer("porter", maxCacheSize=0)
# Lucene stems words with the endings below differently. `stem` first changes the ending of such a
# word, so that this stemmer's result equals Lucene's. The first two patterns apply only after a
# vowel and then a consonant. There, y after a consonant counts as a vowel.
_SYLLABLE = r".*(?:[aeiou][^aeiou]|[^aeiou]y[^aeiou]).*"
_FORMS = r"(?:i|y|is|ys|ies|[iy](?:ed|ing)s?)"  # endings that Porter's first steps turn into -i
_VARIANTS = (
    (re.compile(rf"({_SYLLABLE}bl){_FORMS}"), r"\1e"),
    (re.compile(rf"({_SYLLABLE}log){_FORMS}"), r"\1"),
    # Before -ed and -ing, Lucene makes every double consonant except l, s and z single. This
    # stemmer does so only for b, d, f, g, m, n, p, r and t.
    (re.compile(r"(.*(?:[aeiou]|[^aeiou]y).*([^aeiouybdfgmnprtlsz]))\2(?:ed|ing)s?"), r"\1"),
)


def analyse(text: str) -> list[str]:
    """The terms of any text, in order, with repetitions."""
    # No word contains a space, so `_terms` can cache the terms of each text between two spaces.
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
    """A long word, cut as Lucene cuts it: into matches of at most 255 characters."""
    pieces, start = [], 0
    while start < len(word):
        match = _WORD.match(word, start, start + _LONGEST)
        if match and match[1]:
            pieces.append(match[1])
        start = match.end() if match else start + 1
    return pieces


def _lower(word: str) -> str:
    """Java's lower case, which maps each character to one character."""
    return "".join(char.lower()[0] for char in word)


def stem(word: str) -> str:
    """Lucene's Porter stem of a lower-case word.

    It follows Porter, "An algorithm for suffix stripping" (1980,
    https://tartarus.org/martin/PorterStemmer/), with four differences. Words of one or two letters
    stay as they are. -bli becomes -ble, so that assembly matches assemble. -logi becomes -log, so
    that technology matches technological. Every doubled consonant except l, s and z becomes single
    before -ed and -ing, so that trekking matches trek.
    """
    if len(word) <= 2:
        return word
    for pattern, base in _VARIANTS:
        if match := pattern.fullmatch(word):
            return _PORTER.stemWord(match.expand(base))
    return _PORTER.stemWord(word)
