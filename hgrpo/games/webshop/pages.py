"""Builds the shop's pages, each a sequence of texts, buttons and links in reading order."""

import json
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from hgrpo.games.webshop.records import Item

SEARCH, BUY, BACK = "Search", "Buy Now", "Back to Search"
PREVIOUS, NEXT = "< Prev", "Next >"
TABS = ("Description", "Features", "Reviews", "Attributes")
SEPARATOR = " [SEP] "
_NO_RATING = "N.A."
_BLANK = " \t\n\f\r"


class Piece(NamedTuple):
    """One element of a page. `text` includes leading and trailing spaces.

    The heading above an instruction also has the kind "instruction". If the element is the value of
    an option, `option` is the name of that option.
    """

    kind: Literal["instruction", "text", "button", "product", "option"]
    text: str
    option: str = ""


Page = list[Piece]


def index(instruction: str) -> Page:
    """The page with the search bar."""
    return [*_texts("WebShop", "Instruction: ", instruction, kind="instruction"), _button(SEARCH)]


def results(instruction: str, number: int, total: int, items: Iterable[Item]) -> Page:
    """Page `number` (counted from 1) of a search with `total` results.

    As in the original, every page has a button "Next >", even if the next page is empty.
    """
    page = [*_head(instruction), *_texts(f"Page {number} (Total results: {total})")]
    if number > 1:
        page.append(_button(PREVIOUS))
    page.append(_button(NEXT))
    for item in items:
        page.append(Piece("product", item.product.asin))
        page += _texts(item.product.title, item.product.price_tag)
    return page


def item_page(instruction: str, item: Item, show_attributes: bool) -> Page:
    """The page of a product, with its options and tabs; the tab "Attributes" is optional."""
    product = item.product
    page = [*_head(instruction), _button(PREVIOUS)]
    for name, values in product.options.items():
        page += _texts(name)
        # As in the original WebShop, an empty value has no button.
        page += [Piece("option", value, name) for value in values if value]
    page += _texts(product.title, f"Price: {product.price_tag}", f"Rating: {_NO_RATING}")
    page += [_button(tab) for tab in TABS[: None if show_attributes else -1]]
    page.append(_button(BUY))
    return page


def sub_page(instruction: str, item: Item, tab: str) -> Page:
    """A product's page for a `tab` in `TABS`; "Reviews" is empty, because no file has reviews."""
    product = item.product
    paths = product.category, product.query, product.product_category
    details = {
        "Description": [product.description],
        "Features": [f" {point}" for point in product.bullet_points],
        "Attributes": [*(f" {attribute}" for attribute in product.attributes), *paths],
    }
    return [*_head(instruction), _button(PREVIOUS), *_texts(*details.get(tab, []))]


def done(asin: str, chosen: Mapping[str, str], reward: float) -> Page:
    """The page after a purchase. As in the original, some of its fields are empty."""
    options = json.dumps(dict(sorted(chosen.items())))
    for character in "<>&'":
        options = options.replace(character, f"\\u{ord(character):04x}")
    return _texts(
        "Thank you for shopping with us!",
        "Your code: ",
        "None",
        " (Paste it in your MTurk interface.)",
        *("Purchased", "asin", asin, "options", options),
        *("attrs", "None", "category", "None", "query", "None", "product category", "None"),
        *("Target", "asin", "options", "attrs", "price upper", "instuction text"),
        *("category", "product category", "query", "Goal ", "None"),
        *("Reward", "Your score (min 0.0, max 1.0)", str(reward), "Reward Details ", "None"),
    )


def text(page: Page) -> str:
    """The observation format `text` of the original: all elements joined by `SEPARATOR`."""
    return SEPARATOR.join(piece.text.strip() for piece in page)


def address(query: str, chosen: Mapping[str, str]) -> str:
    """The part of the original's URL that contains the search and the chosen options.

    The original marks a value as clicked if the URL contains the value in double quotes. It also
    infers the kind of page from words in the URL. The agent's search words can cause false matches.
    """
    return f"{query.replace(' ', '+')}/{json.dumps(dict(chosen))}"


def rich(page: Page, chosen: Mapping[str, str], opened: Iterable[str], query: str = "") -> str:
    """The observation format `text_rich` of the original: one element per line, buttons marked.

    The values in `chosen` (option name -> value) and the ASINs in `opened` (products opened since
    the search page) are marked as clicked. As in the original, a value is marked if the `address`
    contains it in double quotes. This reproduces three errors. Chosen values with JSON escapes,
    such as "café", are not marked. Values that equal the name of a chosen option are marked. Values
    that the search `query` contains in double quotes are also marked.
    """
    choices, opened = address(query, chosen), set(opened)
    lines: list[str] = []
    clicked: list[str] = []
    for piece in page:
        if piece.kind == "button":
            lines.append(f"[button] {piece.text} [button_]")
        elif piece.kind == "option":
            marked = f'"{piece.text}"' in choices
            if marked:
                clicked.insert(0, f"You have clicked {piece.text}.")
            lines.append("  " + _mark(piece.text, marked))
        elif piece.kind == "product":
            lines.append("\n" + _mark(piece.text, piece.text in opened))
        else:
            lines.append(piece.text)
    return "".join(f"{line}\n" for line in [*clicked, *lines])


def clickables(page: Page) -> dict[str, Piece]:
    """Map each clickable text to its element, in the order buttons, products, option values.

    If several elements have the same text, the last one is used. For example, if two options share
    a value, a click on this value sets the second option.
    """
    pieces: dict[str, Piece] = {}
    for kind in ("button", "product"):
        pieces |= {piece.text.lower(): piece for piece in page if piece.kind == kind}
    return pieces | {piece.text: piece for piece in page if piece.kind == "option"}


def _head(instruction: str) -> Page:
    return [*_texts("Instruction:", instruction, kind="instruction"), _button(BACK)]


def _mark(text: str, clicked: bool) -> str:
    word = "clicked button" if clicked else "button"
    return f"[{word}] {text} [{word}_]"


def _button(label: str) -> Piece:
    return Piece("button", label)


def _texts(*texts: str, kind: Literal["instruction", "text"] = "text") -> Page:
    """Create elements from texts, without those that the original's HTML parser drops.

    The parser drops empty texts, and ASCII white space that contains a line break. Other white
    space is replaced by one space.
    """
    pieces = []
    for content in texts:
        if content.strip(_BLANK):
            pieces.append(Piece(kind, content))
        elif content and "\n" not in content:
            pieces.append(Piece(kind, " "))
    return pieces
