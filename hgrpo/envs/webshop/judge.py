"""What a judge must know about WebShop: the prompt's primer and the offline rubric.

The rubric reads a turn's effect from the next turn's observation. Pages in plain text do not show a
chosen option, so the effect of choosing one is read from the page that offers it. The wanted words
are those of the instruction, without its price limit and words such as "find me". A text's match is
the share of the wanted words that it contains.

score  turn
-----  ----
    0  no action, or an action that neither changes the page nor chooses an option
    1  repeats an action on the same page
    9  choosing an option value that the instruction names
    2  choosing another value, or clicking on an option's name, which reads like a value
   10  the purchase that completes the task
3 to 8  another purchase: 3 + 5 x match of the product's page
    2  any other last turn, whose effect is not shown
2 to 8  a search: 2 + 6 x the best match of a title listed
1 to 9  opening a product: 2 + 6 x match of its page, plus 1 within the price limit, minus 1 above
    3  the next page of results; a product's description, features, reviews or attributes
    2  everything else that has an effect

The first line that fits gives the score.
"""

import re

from hgrpo.envs.environment import JudgeText, Turns
from hgrpo.envs.webshop import pages
from hgrpo.envs.webshop.instruction_words import PLAIN, words
from hgrpo.envs.webshop.prices import split_limit

_ACTION = re.compile(r"(search|click)\[(.+)\]")
_PRICE = re.compile(r"\$([0-9]+(?:\.[0-9]+)?)")
_PIECES = re.compile(r" \[sep\] |\n")
_PREVIOUS = pages.PREVIOUS.lower()
_TABS = {tab.lower() for tab in pages.TABS}


def score(goal: str, turns: Turns, completed: bool) -> list[float]:
    """Scores of one trajectory by the rules above: one in 0..10 for each turn."""
    text, most = split_limit(goal.lower())
    wanted = set(words(text)) - PLAIN
    results: list[str | None] = [observation for observation, _ in turns[1:]]
    tried: set[tuple[str, str]] = set()
    scores = []
    for (page, action), result in zip(turns, [*results, None], strict=True):
        action = action.strip().lower()
        parsed = _ACTION.match(action)
        repeated = (page, action) in tried
        tried.add((page, action))
        if parsed is not None and _offers(page, *parsed.groups()):
            scores.append(1.0 if repeated else 9.0 if _names(text, parsed[2]) else 2.0)
        elif parsed is None or result == page:
            scores.append(0.0)
        elif result is None:
            bought = action == "click[buy now]"
            match = _match(wanted, page, text)
            scores.append(10.0 if completed else 3 + 5 * match if bought else 2.0)
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
        pieces = _PIECES.split(result.lower())
        return 2 + 6 * max(_match(wanted, piece, goal) for piece in pieces)
    if "buy now" in result.lower() and argument not in result.lower():
        price = _PRICE.search(result.partition("Price:")[2])
        affordable = price is None or float(price[1]) <= most
        return 2 + 6 * _match(wanted, result, goal) + (1 if affordable else -1)
    if "buy now" in result.lower():
        return 9.0 if _names(goal, argument) else 2.0
    return 3.0 if argument == "next >" or argument in _TABS else 2.0


def _offers(page: str, verb: str, argument: str) -> bool:
    """Whether a product's page in plain text lists `argument` among its options.

    Options stand between "< Prev" and the title; the price follows the title.
    """
    pieces = [piece.strip() for piece in _PIECES.split(page.lower())]
    price = next((i for i, piece in enumerate(pieces) if piece.startswith("price:")), None)
    if verb != "click" or price is None or _PREVIOUS not in pieces[:price]:
        return False
    return argument in pieces[pieces.index(_PREVIOUS) + 1 : price - 1]


def _names(goal: str, value: str) -> bool:
    """Whether the instruction names an option's value. "color:" names an option, not a value."""
    return re.search(rf"(?<!\w){re.escape(value)}(?![\w:])", goal) is not None


def _match(wanted: set[str], text: str, goal: str) -> float:
    """Share of the wanted words in a text, after the instruction is cut out of it."""
    seen = set(words(text.lower().replace(goal, " ")))
    return len(wanted & seen) / len(wanted) if wanted else 0.0


JUDGE_TEXT = JudgeText(
    primer=(
        "The game is a web shop in text (WebShop). The agent searches, opens products, chooses "
        "options and buys one. Informative searches, opening a product that matches the "
        "instruction, choosing the options asked for and buying the match count for more than "
        "redundant navigation, and that for more than actions without effect. In plain text "
        "a product's page looks the same before and after an option is chosen: a click on a value "
        "that it offers has its effect all the same."
    ),
    score=score,
    rubric_version="4e1d479b306dc7a1",
)
