"""Creates goals from instructions, in the same order as the original WebShop.

Goals are listed by product and then shuffled as in the original (Python's `random.shuffle`, seed
233). Therefore a goal has the same index as in the original.
"""

import itertools
import random
import re
from collections.abc import Iterable, Iterator

from hgrpo.games.webshop.prices import limit_text, price_limit
from hgrpo.games.webshop.records import Goal, Instruction, Item

_ORDER_SEED = 233
_WORD = re.compile(r"[a-z0-9][a-z0-9.%-]*")
_PLAIN = """
    a an and any are at buy can color find for get give good have i in is it like looking me
    my need of on one please recommend search show size some that the them this to want which
    with would you
"""
# Words that occur in instructions but do not describe a product.
PLAIN = frozenset(_PLAIN.split())


def synthetic_goals(item: Item, instruction: Instruction, seed: int) -> Iterator[Goal]:
    """Yield one goal per combination of option values, with the options sorted by name."""
    options = item.product.options
    names = sorted(options)
    limit = price_limit(item.price, seed, item.product.asin)
    for values in itertools.product(*(options[name] for name in names)):
        chosen = tuple(zip(names, values, strict=True))
        choices = ", and ".join(f"{name}: {value}" for name, value in chosen)
        wish = f" with {choices}" if choices else ""
        text = f"{instruction.text}{wish}{limit_text(limit)}"
        yield Goal(item.row, text, instruction.attributes, chosen, limit)


def human_goal(item: Item, instruction: Instruction, seed: int, number: int) -> Goal:
    """The goal of a human instruction; `number` is its index among the item's instructions."""
    limit = price_limit(item.price, seed, item.product.asin, number)
    text = instruction.text.strip(".") + limit_text(limit)
    return Goal(item.row, text, instruction.attributes, instruction.options or (), limit)


def in_order(goals: Iterable[Goal]) -> list[Goal]:
    """Shuffle goals into the order of the original WebShop."""
    listed = list(goals)
    random.Random(_ORDER_SEED).shuffle(listed)
    return listed


def words(text: str) -> list[str]:
    """Split a lower-case text into words."""
    return _WORD.findall(text)
