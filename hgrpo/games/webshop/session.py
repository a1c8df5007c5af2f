"""A shopper's session: its pages, and what its actions do.

An action is `search[words]`, on any page, or `click[text]`. The text must be one that the page lets
an agent click, in upper or lower case. All other actions change nothing and pay nothing. The
original's hidden search commands (`<r>`, `<a>`, `<c>`, `<q>`) are ordinary words here.
"""

from copy import copy
from typing import Literal

from hgrpo.games.webshop import pages
from hgrpo.games.webshop.records import Goal, Item
from hgrpo.games.webshop.reward import Reward, reward
from hgrpo.games.webshop.shop import Shop

Kind = Literal["index", "results", "item", "sub", "done"]
PAGE_SIZE = 10
_TABS = {tab.lower(): tab for tab in pages.TABS}


class Session:
    """A session in a shared shop; it holds only its own state.

    Attributes:
        page: the current page; `kind` is its kind, and only "index" has a search bar.
        clickables: text to click -> the piece of the page that it clicks.
        query: the words of the last search since the search page; empty before one.
        number: which page of results is open or was open last, counted from 1. "< Prev" on a
            product can lead to page 0, which lists nothing, see `_taken_for`.
        item: the product that is open or was bought; None on search and result pages.
        chosen: option name -> value, for that product.
        opened: asins of the products opened since the search page.
        bought: the reward of the purchase; None before it.
    """

    def __init__(self, shop: Shop, goal: Goal, show_attributes: bool = False) -> None:
        self.shop = shop
        self.goal = goal
        self._show_attributes = show_attributes
        self.bought: Reward | None = None
        self._restart()

    def fork(self) -> "Session":
        """An independent session in the same state. Pages and lists are replaced, never changed."""
        twin = copy(self)
        twin.chosen, twin.opened = self.chosen.copy(), self.opened.copy()
        return twin

    @property
    def clicks(self) -> list[str]:
        """Each text X for which `click[X]` is admissible, in the order of `clickables`.

        As in the original, no action can click the search bar, an empty text, or a text with an
        opening bracket or a line break.
        """
        return [text for text in self.clickables if _parse(f"click[{text}]") == ("click", text)]

    @property
    def last_page(self) -> int:
        """Number of the last page of results that has products; 0 if none has."""
        return -(-len(self._hits) // PAGE_SIZE)

    @property
    def listed(self) -> list[int]:
        """Rows of the products on a page of results; empty on other pages."""
        return self._on_page() if self.kind == "results" else []

    def act(self, action: str) -> bool:
        """Take an action and return whether it was admissible; if not, nothing changes.

        RuntimeError if the session has ended with a purchase.
        """
        if self.bought is not None:
            raise RuntimeError("act after the purchase")
        match _parse(action):
            case ("search", words):
                self.query, self._hits = words, self.shop.search(words)
                self._show_results(1)
                return True
            case ("click", text) if text in self.clickables:
                self._click(text, self.clickables[text])
                return True
        return False

    def _click(self, text: str, piece: pages.Piece) -> None:
        # As in the original, the text decides first: clicking an option value "buy now" buys. An
        # asin may be spelt like a product's button, so these buttons need an open product.
        kind = self._taken_for()
        if text == pages.BUY.lower() and self.item is not None:
            target = self.shop.item(self.goal.row)
            self.bought = reward(self.item, target, self.goal, self.chosen)
            asin, paid = self.item.product.asin, self.bought.total
            self._show("done", pages.done(asin, self.chosen, paid))
        elif text == pages.BACK.lower():
            self._restart()
        elif text == pages.NEXT.lower() and kind == "results":
            self._show_results(self.number + 1)
        elif text == pages.PREVIOUS.lower() and kind == "results":
            self._show_results(self.number - 1)
        elif text == pages.PREVIOUS.lower() and kind == "item":
            self._show_results(self.number)
        elif text in _TABS and self.item is not None:
            self._show("sub", pages.sub_page(self.goal.text, self.item, _TABS[text]))
        else:
            if piece.kind == "product":
                items = map(self.shop.item, self._on_page())
                self.item = next(item for item in items if item.product.asin == piece.text)
                self.opened.add(piece.text)
            elif piece.kind == "option":
                self.chosen[piece.option] = text
            self._show("item", pages.item_page(self.goal.text, self.item, self._show_attributes))

    def _taken_for(self) -> Kind:
        """The kind of page that the original takes this page for on "< Prev" and "Next >".

        The original looks for the names of its pages anywhere in the URL, and the URL contains what
        was searched and chosen. "search_results" there makes a product and its tabs look like a
        page of results, and "item_page" makes a tab look like a product.
        """
        filled = pages.address(self.query, self.chosen)
        if self.kind in ("item", "sub") and "search_results" in filled:
            return "results"
        if self.kind == "sub" and "item_page" in filled:
            return "item"
        return self.kind

    def _restart(self) -> None:
        self.query = ""
        self._hits: list[int] = []
        self.number = 1
        self.item: Item | None = None
        self.chosen: dict[str, str] = {}
        self.opened: set[str] = set()
        self._show("index", pages.index(self.goal.text))

    def _show_results(self, number: int) -> None:
        self.number = number
        self.item, self.chosen = None, {}
        items = [self.shop.item(row) for row in self._on_page()]
        self._show("results", pages.results(self.goal.text, number, len(self._hits), items))

    def _on_page(self) -> list[int]:
        first = (self.number - 1) * PAGE_SIZE
        return self._hits[first : first + PAGE_SIZE]

    def _show(self, kind: Kind, page: pages.Page) -> None:
        self.kind, self.page = kind, page
        self.clickables = pages.clickables(page)


def _parse(action: str) -> tuple[str, str] | None:
    """Verb and lower-case argument; None for `click[search]` and for text of another form.

    The original's pattern `(.+)\\[(.+)\\]` finds the same, but not in linear time. Only the first
    line counts. The argument ends before the last `]`. It begins after the last `[` that leaves at
    least one character for the argument.
    """
    line = action.partition("\n")[0]
    end = line.rfind("]")
    begin = line.rfind("[", 1, max(end - 1, 1))
    if begin < 1:
        return None
    verb, argument = line[:begin], line[begin + 1 : end].lower()
    return None if (verb, argument) == ("click", pages.SEARCH.lower()) else (verb, argument)
