"""Scripted shoppers: where demonstrations and the ceiling come from.

`Oracle` knows the product that was asked for: it searches for its title, pages on until it is
listed, chooses every option of the goal that the page offers, and buys. Its reward is the ceiling
of a goal, which is not always 1.

`Reader` knows the instruction and the pages, as an agent does. It searches for the instruction's
words, opens what looks closest and is not too dear, chooses the values that the instruction names,
and buys when enough of the words have been seen on the product's pages, or the best it has opened
when its patience ends. Its habits are knobs, so that demonstrations can be as poor as a study
wants.
"""

import re

import numpy as np

from hgrpo.config.env_webshop import HabitsConfig
from hgrpo.envs.webshop import pages
from hgrpo.envs.webshop.records import NO_LIMIT, Item
from hgrpo.envs.webshop.session import Session

_LAST_PAGE = 5
_WORD = re.compile(r"[a-z0-9][a-z0-9.%-]*")
_LIMIT = re.compile(r", and price lower than ([0-9.]+) dollars$")
_BRACKETS = str.maketrans("[]", "  ")
# What instructions say around the things that are asked for.
_WORDS = """
    a an and any are at buy can find for get give good have i i'd i'm in is it like looking me
    my need of on one or please recommend search show some something that the them these this
    to want which with would you am be has let's shop help color size flavor name scent
    material style pack
"""
_PHRASES = frozenset(_WORDS.split())


class Oracle:
    """Plays one session knowing its product.

    Args:
        session: at its start.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._target: Item = session.shop.item(session.goal.row)
        self._asked = [
            option if isinstance(option, tuple) else (None, option)
            for option in session.goal.options
        ]

    def act(self) -> str | None:
        """The next action; None if search does not find the product."""
        session, target = self._session, self._target
        if session.item is not None:
            for name, value in self._asked:
                piece = session.clickables.get(value)
                chosen = piece is not None and session.chosen.get(piece.option) == value
                if piece is not None and not chosen and name in (None, piece.option):
                    return f"click[{value}]"
            return _click(pages.BUY)
        if session.has_search_bar:
            return f"search[{_searchable(target.product.title)}]"
        if target.row in session.listed:
            return _click(target.product.asin)
        if session.number < _LAST_PAGE and session.listed:
            return _click(pages.NEXT)
        return None


class Reader:
    """Plays one session knowing what an agent knows.

    Args:
        session: at its start.
        knobs: its habits.
        rng: its draws.
    """

    def __init__(self, session: Session, knobs: HabitsConfig, rng: np.random.Generator) -> None:
        self._session = session
        self._knobs = knobs
        self._rng = rng
        text = session.goal.text.lower()
        limit = _LIMIT.search(text)
        self._limit = float(limit[1]) if limit else NO_LIMIT
        self._text = text[: limit.start()] if limit else text
        self._words = [w for w in _WORD.findall(self._text) if w not in _PHRASES]
        self._seen: dict[str, float] = {}
        self._passed: set[tuple[str, str]] = set()
        self._read = ""

    def act(self) -> str:
        """The next action."""
        session = self._session
        if session.has_search_bar:
            kept = [w for w in self._words if self._rng.random() >= self._knobs.forget_word]
            return f"search[{_searchable(' '.join(kept or self._words))}]"
        if session.item is None:
            return self._choose_product()
        if pages.BUY.lower() not in session.clickables:
            return _click(pages.PREVIOUS)
        return self._on_product()

    def _choose_product(self) -> str:
        session = self._session
        listed = [session.shop.item(row) for row in session.listed]
        fresh = [item for item in listed if item.product.asin not in self._seen]
        if len(self._seen) >= self._knobs.patience or not fresh:
            best = max(self._seen, key=self._seen.get, default=None)
            if best is not None and best.lower() in session.clickables:
                return _click(best)
            if not listed:
                return _click(pages.BACK)
            fresh = listed
        if self._rng.random() < self._knobs.random_pick:
            return _click(fresh[self._rng.integers(len(fresh))].product.asin)
        affordable = [item for item in fresh if item.product.prices[0] <= self._limit] or fresh
        scores = [self._match(item.product.title.lower()) for item in affordable]
        return _click(affordable[int(np.argmax(scores))].product.asin)

    def _on_product(self) -> str:
        session, product = self._session, self._session.item.product
        asin = product.asin
        first = asin not in self._seen
        if first:
            self._read = product.title.lower()
            self._seen[asin] = self._match(self._read)
            self._passed.clear()
        for name, values in product.options.items():
            if name in session.chosen or (asin, name) in self._passed:
                continue
            self._passed.add((asin, name))
            value = self._named(values)
            if value is not None and self._rng.random() >= self._knobs.skip_option:
                return f"click[{value}]"
        if (asin, pages.TABS[1]) not in self._passed and self._rng.random() < self._knobs.look:
            self._passed.add((asin, pages.TABS[1]))
            self._read += " " + " ".join(product.bullet_points).lower()
            self._seen[asin] = self._match(self._read)
            return _click(pages.TABS[1])
        best = max(self._seen.values())
        enough = self._seen[asin] >= self._knobs.content_with
        if enough or (len(self._seen) >= self._knobs.patience and self._seen[asin] >= best):
            return _click(pages.BUY)
        if len(self._seen) >= self._knobs.patience and not first:
            return _click(pages.BUY)
        return _click(pages.PREVIOUS)

    def _match(self, text: str) -> float:
        """Share of the instruction's words that stand in a text."""
        if not self._words:
            return 1.0
        return sum(word in text for word in self._words) / len(self._words)

    def _named(self, values: tuple[str, ...]) -> str | None:
        """The longest of the values that the instruction names."""
        named = [v for v in values if re.search(rf"(?<!\w){re.escape(v)}(?!\w)", self._text)]
        return max(named, key=len, default=None)


def _click(text: str) -> str:
    """A click on what the page shows; the shop does not mind capitals, and copying is easier."""
    return f"click[{text}]"


def _searchable(words: str) -> str:
    """Words as a search can carry them: on one line, without brackets, not empty."""
    return " ".join(words.lower().translate(_BRACKETS).split()) or "product"
