"""The offline rubric's rules for WebShop.

A turn's effect is read from the next turn's observation. "Wanted words" are the words of the
instruction, without its price limit and without words that any instruction has; a text's match is
the share of them that it holds.

score  turn
-----  ----
    0  the page stays as it was, or no action
    1  the same action on the same page as before
   10  the purchase that completes the task
3 to 8  another purchase: 3 + 5 x match of the product's page
    2  the last turn otherwise: its effect is not shown
2 to 8  a search: 2 + 6 x the best match of a title listed
1 to 9  opening a product: 2 + 6 x match of its page, and one more if within the price limit, one
        less if above
    9  choosing an option value that the instruction names
    3  the next page of results; a product's description, features, reviews or attributes
    2  everything else that has an effect

The first line that fits counts.
"""

import re

from hgrpo.credit.judge.record import Record
from hgrpo.envs.webshop import pages
from hgrpo.envs.webshop.instruction_words import PLAIN, words
from hgrpo.envs.webshop.prices import split_limit

_ACTION = re.compile(r"(search|click)\[(.+)\]")
_PRICE = re.compile(r"\$([0-9]+(?:\.[0-9]+)?)")
_TABS = {tab.lower() for tab in pages.TABS}


def webshop(goal: str, record: Record) -> list[float]:
    """Scores of one shopper's trajectory, by the rules above."""
    text, most = split_limit(goal.lower())
    wanted = set(words(text)) - PLAIN
    results: list[str | None] = [observation for observation, _ in record.turns[1:]]
    tried: set[tuple[str, str]] = set()
    scores = []
    for (page, action), result in zip(record.turns, [*results, None], strict=True):
        action = action.strip().lower()
        parsed = _ACTION.match(action)
        repeated = (page, action) in tried
        tried.add((page, action))
        if parsed is None or result == page:
            scores.append(0.0)
        elif result is None:
            bought = action == "click[buy now]"
            match = _match(wanted, page, text)
            scores.append(10.0 if record.completed else 3 + 5 * match if bought else 2.0)
        elif repeated:
            scores.append(1.0)
        else:
            scores.append(_effect(*parsed.groups(), result, wanted, text, most))
    return scores


def _effect(
    verb: str, argument: str, result: str, wanted: set[str], goal: str, most: float
) -> float:
    """Score of an action that changed the page to `result`."""
    if verb == "search":
        pieces = re.split(r" \[SEP\] |\n", result)
        return 2 + 6 * max(_match(wanted, piece, goal) for piece in pieces)
    if "buy now" in result.lower() and argument not in result.lower():
        price = _PRICE.search(result.partition("Price:")[2])
        affordable = price is None or float(price[1]) <= most
        return 2 + 6 * _match(wanted, result, goal) + (1 if affordable else -1)
    if "buy now" in result.lower():
        named = re.search(rf"(?<!\w){re.escape(argument)}(?!\w)", goal) is not None
        return 9.0 if named else 2.0
    return 3.0 if argument == "next >" or argument in _TABS else 2.0


def _match(wanted: set[str], text: str, goal: str) -> float:
    """Share of the wanted words in a text, from which the instruction itself was taken out."""
    seen = set(words(text.lower().replace(goal, " ")))
    return len(wanted & seen) / len(wanted) if wanted else 0.0
