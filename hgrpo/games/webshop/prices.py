"""Draws the prices of products and the price limits of goals, from the seed of the panels.

The original draws prices and limits before it seeds Python's generator, so every process draws
different values. Here, each product and each instruction has its own random stream, so that tasks
are reproducible.
"""

import re
from collections.abc import Sequence

from hgrpo.games import streams
from hgrpo.games.webshop.records import NO_LIMIT

LIMIT = re.compile(r", and price lower than ([0-9]+(?:\.[0-9]+)?) dollars")
_AT_END = re.compile(LIMIT.pattern + "$")
_LIMITS = tuple(10.0 * i for i in range(1, 100))
_NEXT = 4


def price(prices: Sequence[float], seed: int, asin: str) -> float:
    """Return a product's price in dollars. If `prices` is a range, the price is drawn uniformly."""
    if len(prices) == 1:
        return prices[0]
    low, high = prices
    return low + (high - low) * streams.generator("webshop-price", seed, asin).random()


def price_limit(price: float, seed: int, *name: object) -> float:
    """Draw the price limit of a goal, in dollars.

    The candidates are the next four multiples of 10 above `price`, without those above 990. The
    limit is the larger of two randomly drawn candidates, or `NO_LIMIT` if fewer than two remain.
    """
    above = [limit for limit in _LIMITS if limit > price][:_NEXT]
    if len(above) < 2:
        return NO_LIMIT
    drawn = streams.generator("webshop-limit", seed, *name).choice(len(above), 2, replace=False)
    return above[max(drawn)]


def limit_text(limit: float) -> str:
    """The clause with the price limit, for the end of an instruction; "" for `NO_LIMIT`."""
    return "" if limit == NO_LIMIT else f", and price lower than {limit:.2f} dollars"


def split_limit(text: str) -> tuple[str, float]:
    """Split an instruction into its text and its price limit, in dollars or `NO_LIMIT`."""
    clause = _AT_END.search(text)
    return (text[: clause.start()], float(clause[1])) if clause else (text, NO_LIMIT)
