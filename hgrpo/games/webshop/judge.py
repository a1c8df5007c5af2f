"""The primer that LLM judges receive for WebShop, and the offline rubric.

The rubric infers the effect of a turn from the observation in the next turn. Plain-text pages do
not show which options are chosen. On such pages, a click on an option is scored by its text.

The goal words are the words of the instruction, excluding its price limit and words such as "find
me". The match of a text is the share of the goal words that it contains.

The score of a turn is given by the first line that applies:

score   turn
------  ----
        a click on an option of a plain-text page:
1         if the same click was made on the same page before
9         if the instruction contains the value
2         if it does not, or if an option's name, which looks like a value, is clicked
0       no action, or an action that does not change the page
        the last turn, whose effect is not observed:
10        the purchase that completes the task
3 to 8    another purchase: 3 + 5 x match of the product's page
2         any other action
1       an action that was taken on the same page before
2 to 8  a search: 2 + 6 x the best match among the texts on the page of results
1 to 9  opening a product: 2 + 6 x match of its page, plus 1 if its price is within the limit, else
        minus 1
        a click on an option of a page with marked buttons:
9         if the instruction contains the value
2         if it does not
3       opening the next page of results, or the description, features, reviews or attributes
        of a product
2       any other action that has an effect
"""

import re

from hgrpo.games.environment import JudgeText, Turns
from hgrpo.games.webshop import pages
from hgrpo.games.webshop.goals import PLAIN, words
from hgrpo.games.webshop.prices import split_limit

_ACTION = re.compile(r"(search|click)\[(.+)\]")
_PRICE = re.compile(r"\$([0-9]+(?:\.[0-9]+)?)")
_PIECES = re.compile(r" \[sep\] |\n")
_PREVIOUS = pages.PREVIOUS.lower()
_TABS = {tab.lower() for tab in pages.TABS}


def score(goal: str, turns: Turns, completed: bool) -> list[float]:
    """Score each turn of a trajectory from 0 to 10, by the rules above."""
    text, most = split_limit(goal.lower())
    goal_words = set(words(text)) - PLAIN
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
            match = _match(goal_words, page, text)
            scores.append(10.0 if completed else 3 + 5 * match if bought else 2.0)
        elif repeated:
            scores.append(1.0)
        else:
            scores.append(_effect(*parsed.groups(), result, goal_words, text, most))
    return scores


def _effect(
    verb: str, argument: str, result: str, goal_words: set[str], goal: str, most: float
) -> float:
    """Score a new action that has led to the page `result`."""
    if verb == "search":
        pieces = _PIECES.split(result.lower())
        return 2 + 6 * max(_match(goal_words, piece, goal) for piece in pieces)
    if "buy now" in result.lower() and argument not in result.lower():
        price = _PRICE.search(result.partition("Price:")[2])
        affordable = price is None or float(price[1]) <= most
        return 2 + 6 * _match(goal_words, result, goal) + (1 if affordable else -1)
    if "buy now" in result.lower():
        return 9.0 if _names(goal, argument) else 2.0
    return 3.0 if argument == "next >" or argument in _TABS else 2.0


def _offers(page: str, verb: str, argument: str) -> bool:
    """Whether the action clicks the value or name of an option on a plain-text product page.

    On such a page, the options are between "< Prev" and the title, and the price follows the title.
    """
    pieces = [piece.strip() for piece in _PIECES.split(page.lower())]
    price = next((i for i, piece in enumerate(pieces) if piece.startswith("price:")), None)
    if verb != "click" or price is None or _PREVIOUS not in pieces[:price]:
        return False
    return argument in pieces[pieces.index(_PREVIOUS) + 1 : price - 1]


def _names(goal: str, value: str) -> bool:
    """Whether the instruction contains `value` as words that are not followed by a colon."""
    return re.search(rf"(?<!\w){re.escape(value)}(?![\w:])", goal) is not None


def _match(goal_words: set[str], text: str, goal: str) -> float:
    seen = set(words(text.lower().replace(goal, " ")))
    return len(goal_words & seen) / len(goal_words) if goal_words else 0.0


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
