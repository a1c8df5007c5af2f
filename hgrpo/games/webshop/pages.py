"""The shop's pages as sequences of texts, buttons and links in reading order."""

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
    """One element of a page; `text` includes its spaces.

    Headings above an instruction also have kind "instruction". For the value of an option, `option`
    is the option's name.
    """

    kind: Literal["instruction", "text", "button", "product", "option"]
    text: str
    option: str = ""


Page = list[Piece]


def index(instruction: str) -> Page:
    """The page with the search bar."""
    return [*_texts("WebShop", "Instruction: ", instruction, kind="instruction"), _button(SEARCH)]


def results(instruction: str, number: int, total: int, items: Iterable[Item]) -> Page:
    """Page `number` (from 1) of the results of a search with `total` results.

    As in the original, every page has a button "Next >", also if the next page is empty.
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
    """A product's page with options and tabs; `show_attributes` adds the tab "Attributes"."""
    product = item.product
    page = [*_head(instruction), _button(PREVIOUS)]
    for name, values in product.options.items():
        page += _texts(name)
        # As in the original, an empty value has a label without text.
        page += [Piece("option", value, name) for value in values if value]
    page += _texts(product.title, f"Price: {product.price_tag}", f"Rating: {_NO_RATING}")
    page += [_button(tab) for tab in TABS[: None if show_attributes else -1]]
    page.append(_button(BUY))
    return page


def sub_page(instruction: str, item: Item, tab: str) -> Page:
    """One of a product's `TABS`; "Reviews" is empty, because the data files contain no reviews."""
    product = item.product
    paths = product.category, product.query, product.product_category
    details = {
        "Description": [product.description],
        "Features": [f" {point}" for point in product.bullet_points],
        "Attributes": [*(f" {attribute}" for attribute in product.attributes), *paths],
    }
    return [*_head(instruction), _button(PREVIOUS), *_texts(*details.get(tab, []))]


def done(asin: str, chosen: Mapping[str, str], reward: float) -> Page:
    """The page after the purchase; as in the original, some of its fields are empty."""
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
    """The original's `text` observation: the elements joined by `SEPARATOR`."""
    return SEPARATOR.join(piece.text.strip() for piece in page)


def address(query: str, chosen: Mapping[str, str]) -> str:
    """The part of the original's URL with the search and the chosen options.

    The original searches its URL for values in double quotes, to mark them as clicked, and for page
    names. It therefore also matches text typed by the agent.
    """
    return f"{query.replace(' ', '+')}/{json.dumps(dict(chosen))}"


def rich(page: Page, chosen: Mapping[str, str], opened: Iterable[str], query: str = "") -> str:
    """The original's `text_rich` observation: one element per line, with buttons marked.

    The values in `chosen` (option name -> value) and the ASINs in `opened`, which were opened since
    the search page, are marked as clicked. Values are looked up, in double quotes, in the `address`
    of the search `query`. This reproduces three errors of the original: chosen values with JSON
    escapes, such as "café", are not marked, while values that equal a chosen option's name or occur
    in double quotes in the query are marked.
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
    """Map clickable text to its element: buttons first, then products, then option values.

    The last of several elements with the same text is used. For example, if two options share a
    value, a click on it chooses the value of the second option.
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
    """Elements of these texts, except for those dropped by the original's HTML parser.

    The parser drops empty texts and ASCII blanks with a line break. Other ASCII blanks become one
    space.
    """
    pieces = []
    for content in texts:
        if content.strip(_BLANK):
            pieces.append(Piece(kind, content))
        elif content and "\n" not in content:
            pieces.append(Piece(kind, " "))
    return pieces
