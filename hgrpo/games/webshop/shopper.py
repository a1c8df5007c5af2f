"""Two scripted shoppers for demonstrations. The ceiling is measured with the oracle.

The oracle knows the goal's product. It searches for the product's title, opens further pages of
results until the product is listed, chooses the goal's options, and buys the product. Its reward
may be below 1.

`Reader` knows only the instruction and the pages, like an agent. It searches for the words of the
instruction, opens the best-matching product within the price limit, and chooses the requested
values of options. It buys the product if enough of the instruction's words are on the product's
pages. After opening a maximum number of products, it buys the best of them.
"""

import re

import numpy as np

from hgrpo.games.webshop import pages
from hgrpo.games.webshop.goals import PLAIN, words
from hgrpo.games.webshop.prices import split_limit
from hgrpo.games.webshop.records import Product
from hgrpo.games.webshop.session import Session
from hgrpo.games.webshop.settings import HabitsSettings

_BRACKETS = str.maketrans("[]", "  ")
# More words that occur in instructions but do not describe a product, in addition to `PLAIN`.
_MORE = "or something these am be has shop help flavor name scent material style pack"
_PHRASES = PLAIN | set(_MORE.split())


def oracle(session: Session) -> str | None:
    """The oracle's next action; None if the search does not find the product."""
    if session.item is not None:
        offered = set(session.clicks)
        for goal_option in session.goal.options:
            name, value = goal_option if isinstance(goal_option, tuple) else (None, goal_option)
            option = session.clickables[value].option if value in offered else ""
            fits = value in offered and name in (None, option)
            if fits and session.chosen.get(option) != value:
                return click(value)
        return click(pages.BUY)
    target = session.shop.item(session.goal.row)
    if session.kind == "index":
        return f"search[{searchable(target.product.title)}]"
    if target.row in session.listed:
        return click(target.product.asin)
    return click(pages.NEXT) if session.number < session.last_page else None


class Reader:
    """Plays a session from its start, with only the information that an agent has."""

    def __init__(self, session: Session, knobs: HabitsSettings, rng: np.random.Generator) -> None:
        self._session = session
        self._knobs = knobs
        self._rng = rng
        self._text, self._limit = split_limit(session.goal.text.lower())
        self._words = [w for w in words(self._text) if w not in _PHRASES]
        self._matches: dict[str, float] = {}  # ASIN of each opened product -> its `_match`
        self._done: set[str] = set()  # options and tabs already handled for the open product
        self._settled = False  # whether it has been decided to buy the open product

    def act(self, _: str | None = None) -> str:
        """Return the next action, which depends on the session. The argument is ignored."""
        session = self._session
        if session.kind == "index":
            query = [w for w in self._words if self._rng.random() >= self._knobs.forget_word]
            return f"search[{searchable(' '.join(query or self._words))}]"
        if session.item is None:
            return self._open()
        if pages.BUY.lower() not in session.clickables:
            return click(pages.PREVIOUS)
        return self._on_product(session.item.product)

    def _open(self) -> str:
        """Open a new product, or reopen the best one if the maximum number has been opened."""
        session = self._session
        listed = [session.shop.item(row).product for row in session.listed]
        if not listed:
            return click(pages.BACK)
        self._done.clear()
        fresh = [product for product in listed if product.asin not in self._matches]
        if not fresh or len(self._matches) >= self._knobs.patience:
            known = [product for product in listed if product.asin in self._matches]
            if known:
                self._settled = True
                return click(max(known, key=lambda product: self._matches[product.asin]).asin)
        if self._rng.random() < self._knobs.random_pick:
            return click(fresh[self._rng.integers(len(fresh))].asin)
        affordable = [product for product in fresh if product.prices[0] <= self._limit] or fresh
        return click(max(affordable, key=lambda product: self._match(product.title)).asin)

    def _on_product(self, product: Product) -> str:
        if product.asin not in self._matches:
            self._matches[product.asin] = self._match(_visible_text(product))
        offered = set(self._session.clicks)
        for name, values in product.options.items():
            if name in self._done:
                continue
            self._done.add(name)
            value = self._named([value for value in values if value in offered])
            if value is not None and self._rng.random() >= self._knobs.skip_option:
                return click(value)
        features = pages.TABS[1]
        if features not in self._done:
            self._done.add(features)
            if self._rng.random() < self._knobs.look:
                text = " ".join((_visible_text(product), *product.bullet_points))
                self._matches[product.asin] = self._match(text)
                return click(features)
        content = self._matches[product.asin] >= self._knobs.content_with
        last = len(self._matches) >= self._knobs.patience
        best = self._matches[product.asin] >= max(self._matches.values())
        if content or self._settled or (last and best):
            return click(pages.BUY)
        return click(pages.PREVIOUS)

    def _match(self, text: str) -> float:
        if not self._words:
            return 1.0
        text = text.lower()
        return sum(word.removesuffix("s") in text for word in self._words) / len(self._words)

    def _named(self, values: list[str]) -> str | None:
        """The longest of the `values` in the instruction, or None if it contains none of them."""
        named = [v for v in values if re.search(rf"(?<!\w){re.escape(v)}(?!\w)", self._text)]
        return max(named, key=len, default=None)


def _visible_text(product: Product) -> str:
    return " ".join((product.title, *(v for values in product.options.values() for v in values)))


def click(text: str) -> str:
    """Click on `text`, spelled as on the page because LLMs tend to copy text verbatim."""
    return f"click[{text}]"


def searchable(text: str) -> str:
    """Convert text to a valid argument of `search[...]`: one non-empty line without brackets."""
    return " ".join(text.lower().translate(_BRACKETS).split()) or "product"
