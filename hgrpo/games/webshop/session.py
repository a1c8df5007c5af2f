"""Implements a shopper's session: its pages and the effects of actions.

An action is either `search[words]`, on any page, or `click[text]`, where `text` is a clickable text
on the page. Case is ignored. All other actions have no effect and no reward. The hidden search
commands of the original (`<r>`, `<a>`, `<c>`, `<q>`) are treated as ordinary words.
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
    """A session in a shop. Several sessions may use the same shop at the same time.

    Attributes:
        page: the current page. Only pages whose `kind` is "index" have a search bar.
        clickables: maps each clickable text to an element of the page.
        query: words of the last search; empty on the search page.
        number: number (from 1) of the last opened page of results. In rare cases, "< Prev" on a
            product page leads to an empty page 0 (see `_taken_for`).
        item: the open or bought product; None on the search page and on pages of results.
        chosen: maps names of options of `item` to the chosen values.
        opened: ASINs of the products opened since the last visit to the search page.
        bought: the reward of the purchase; None before the purchase.
    """

    def __init__(self, shop: Shop, goal: Goal, show_attributes: bool = False) -> None:
        self.shop = shop
        self.goal = goal
        self._show_attributes = show_attributes
        self.bought: Reward | None = None
        self._restart()

    def fork(self) -> "Session":
        """Create an independent session in the same state. The pages are shared, but immutable."""
        twin = copy(self)
        twin.chosen, twin.opened = self.chosen.copy(), self.opened.copy()
        return twin

    @property
    def clicks(self) -> list[str]:
        """All texts X for which `click[X]` is admissible, in the order of `clickables`.

        As in the original, the search bar, empty texts, and texts with an opening bracket or a line
        break cannot be clicked.
        """
        return [text for text in self.clickables if _parse(f"click[{text}]") == ("click", text)]

    @property
    def last_page(self) -> int:
        """Number of the last page with results; 0 if there are no results."""
        return -(-len(self._hits) // PAGE_SIZE)

    @property
    def listed(self) -> list[int]:
        """Catalogue rows of the products on the current page of results; empty on other pages."""
        return self._on_page() if self.kind == "results" else []

    def act(self, action: str) -> bool:
        """Execute an action and return whether it is admissible; if not, it has no effect.

        Raises RuntimeError after the purchase, which ends the session.
        """
        if self.bought is not None:
            raise RuntimeError("`act` was called after the purchase")
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
        # As in the original WebShop, buttons take precedence over option values: if an option has
        # the value "buy now", a click on it buys the product. An ASIN can equal the label of a
        # button on product pages, so these buttons are recognised only while a product is open.
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
        """The kind of page that the original assumes if "< Prev" or "Next >" is clicked.

        The assumption can be wrong, because the original looks for page names anywhere in the URL,
        which also contains the search words and the chosen options. If the words or
        options contain "search_results", a product page and its tabs are treated as a page of
        results. If the words or options contain "item_page", a tab is treated as a product page.
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
    """Parse an action into verb and lower-case argument; None if invalid or `click[search]`.

    The result equals that of the original's pattern `(.+)\\[(.+)\\]`, but is found in linear time.
    Only the first line is used. The argument ends before the last `]`. It begins after the last `[`
    that leaves a non-empty argument.
    """
    line = action.partition("\n")[0]
    end = line.rfind("]")
    begin = line.rfind("[", 1, max(end - 1, 1))
    if begin < 1:
        return None
    verb, argument = line[:begin], line[begin + 1 : end].lower()
    return None if (verb, argument) == ("click", pages.SEARCH.lower()) else (verb, argument)
