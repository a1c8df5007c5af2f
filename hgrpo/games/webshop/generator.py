"""Generates families of similar products in the format of the official files.

Texts are short and the vocabulary is small, so that small language models can learn the task.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, count, islice, repeat
from pathlib import Path
from typing import NamedTuple

from hgrpo.games import streams
from hgrpo.games.webshop.departments import BRANDS, DEPARTMENTS, ProductType
from hgrpo.games.webshop.draws import Draws
from hgrpo.games.webshop.settings import CatalogueSettings
from hgrpo.games.webshop.wording import INSTRUCTIONS, WISHES, Draft, listing, request

PRODUCTS_FILE = "items_shuffle.json"
INSTRUCTIONS_FILE = "items_ins_v2.json"
HUMAN_FILE = "items_human_ins.json"
NOUNS_FILE = "nouns.json"

_PATH = " \u203a "
SYLLABLES = tuple(consonant + vowel for consonant in "BDFGHJKLMNPRSTVWZ" for vowel in "AEIOU")
# Products are shuffled in blocks of this size, so that only one block is held in memory.
_BLOCK = 4096
# Probabilities that a near-duplicate draws new attributes, a new option or a new brand.
_NEW_ATTRIBUTES = 0.8
_NEW_OPTIONS = 0.5
_NEW_BRAND = 0.5
# A near-duplicate's price is the first product's price times exp(u), with u uniform in
# [-spread, spread], clipped to the price range of the product type.
_PRICE_SPREAD = 0.3
# Maximum number of draws until a near-duplicate differs from all others in its family. `_selective`
# also draws this many sets of attributes and returns one of them.
_ATTEMPTS = 8
# Probabilities that a price is a range, and that a request mentions an option.
_PRICE_RANGE = 0.3
_NAMED_OPTION = 0.6


class Generated(NamedTuple):
    """A product's entries in the three official files, and the lower-case nouns of its type."""

    item: dict
    attributes: dict
    human: list[dict]
    nouns: tuple[str, ...]


def generate(config: CatalogueSettings, seed: int) -> Iterator[Generated]:
    """Yield the products, shuffled in blocks to limit memory.

    Before shuffling, product i depends only on i, the seed and the settings. The setting `products`
    affects only ASINs. The settings `instructed` and `human` affect only instructions.
    """
    drafts = ((draft, family) for family in families(config, seed) for draft in family)
    named = zip(asins(config.products, seed), drafts, strict=False)
    drawn = (
        _product(config, draft, family, asin, seed, index)
        for index, (asin, (draft, family)) in enumerate(named)
    )
    for start in range(0, config.products, _BLOCK):
        block = list(islice(drawn, min(_BLOCK, config.products - start)))
        order = streams.generator("webshop-order", seed, start).permutation(len(block))
        yield from (block[i] for i in order.tolist())


def write(folder: Path, products: Iterable[Generated]) -> None:
    """Write the three official files into `folder`, and `nouns.json`, which maps ASINs to nouns.

    If `products` raises an error, the closing brackets are not written, so the files are invalid.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (
        _entries(folder / PRODUCTS_FILE, "[]") as put_item,
        _entries(folder / INSTRUCTIONS_FILE, "{}") as put_attributes,
        _entries(folder / HUMAN_FILE, "{}") as put_human,
        _entries(folder / NOUNS_FILE, "{}") as put_nouns,
    ):
        for product in products:
            key = f"{json.dumps(product.item['asin'])}: "
            put_item(json.dumps(product.item))
            put_attributes(key + json.dumps(product.attributes))
            put_nouns(key + json.dumps(product.nouns))
            if product.human:
                put_human(key + json.dumps(product.human))


@contextmanager
def _entries(path: Path, brackets: str) -> Iterator[Callable[[str], None]]:
    with path.open("w", encoding="utf-8") as handle:
        handle.write(brackets[0])
        separators = chain(["\n"], repeat(",\n"))
        yield lambda entry: handle.write(next(separators) + entry)
        handle.write(f"\n{brackets[1]}\n")


def asins(products: int, seed: int) -> Iterator[str]:
    """Yield distinct identifiers: "B0" and n + 1 syllables, where n >= 1 is as small as possible.

    Let S be the number of `SYLLABLES`. The first syllable of identifier i is entry i mod S of the
    shuffled syllables. Any S consecutive identifiers therefore have distinct first syllables. The
    other n syllables are the base-S digits of

        (a (i div S) + b + c (i mod S)) mod S^n

    All identifiers differ, because a is coprime to S.
    """
    size = len(SYLLABLES)
    tail = next(n for n in count(1) if size ** (n + 1) >= products)
    codes = size**tail
    rng = streams.generator("webshop-asin", seed)
    first = rng.permutation(size).tolist()
    a, b, c = rng.integers(1, codes, size=3).tolist()
    a = next(number for number in count(a) if math.gcd(number, size) == 1)
    for i in range(products):
        code = (a * (i // size) + b + c * (i % size)) % codes
        digits = [code // size**place % size for place in range(tail)]
        yield "B0" + "".join(SYLLABLES[digit] for digit in (first[i % size], *digits))


def families(config: CatalogueSettings, seed: int) -> Iterator[list[Draft]]:
    """Yield families forever; family f depends only on (seed, f) and the settings.

    All members have the same product type. Each shares an attribute with the first member.
    """
    types = [(name, kind) for name in config.departments for kind in DEPARTMENTS[name].types]
    for number in count():
        yield _family(config, types, Draws("webshop-family", seed, number))


def _family(
    config: CatalogueSettings, types: list[tuple[str, ProductType]], draws: Draws
) -> list[Draft]:
    department, kind = draws.pick(types)
    pool = DEPARTMENTS[department].attributes
    brand = draws.pick(BRANDS)
    attributes = tuple(draws.some(pool, draws.between(config.attributes)))
    names = draws.some(kind.options, draws.between(config.option_names))
    options = {name: _values(config, values, draws) for name, values in names}
    price = math.exp(draws.uniform(*map(math.log, kind.prices)))
    first = Draft(department, kind, brand, attributes, options, _prices(kind, price, draws))
    family = [first]
    for _ in range(draws.between(config.family) - 1):
        family.append(_sibling(config, first, family, draws))
    return family


def _sibling(config: CatalogueSettings, first: Draft, others: list[Draft], draws: Draws) -> Draft:
    """Draw a near-duplicate of `first`.

    If possible, it differs from each of the `others` in its attributes or options.
    """
    taken = [(set(other.attributes), other.options) for other in others]
    for _ in range(_ATTEMPTS):
        attributes, options = first.attributes, first.options
        if draws.uniform() < _NEW_ATTRIBUTES:
            attributes = _vary(config, first, draws)
        if draws.uniform() < _NEW_OPTIONS and options:
            name = draws.pick(list(options))
            options = options | {name: _values(config, dict(first.type.options)[name], draws)}
        if (set(attributes), options) not in taken:
            break
    brand = draws.pick(BRANDS) if draws.uniform() < _NEW_BRAND else first.brand
    low = first.prices[0] * math.exp(draws.uniform(-_PRICE_SPREAD, _PRICE_SPREAD))
    prices = _prices(first.type, low, draws)
    return replace(first, brand=brand, attributes=attributes, options=options, prices=prices)


def _vary(config: CatalogueSettings, first: Draft, draws: Draws) -> tuple[str, ...]:
    """Draw the attributes of a near-duplicate.

    One or two attributes of `first` are removed, but at least one is kept. Up to two are added.
    """
    attributes = first.attributes
    retained = draws.some(attributes, max(1, len(attributes) - draws.between((1, 2))))
    low, high = config.attributes
    total = draws.between((max(low, len(retained)), min(high, len(retained) + 2)))
    fresh = [name for name in DEPARTMENTS[first.department].attributes if name not in attributes]
    return (*retained, *draws.some(fresh, total - len(retained)))


def _values(config: CatalogueSettings, values: tuple[str, ...], draws: Draws) -> tuple[str, ...]:
    chosen = set(draws.some(values, draws.between(config.option_values)))
    # Keep the order of `values`, so that sizes ascend.
    return tuple(value for value in values if value in chosen)


def _prices(kind: ProductType, price: float, draws: Draws) -> tuple[float, ...]:
    low, high = kind.prices
    start = round(min(max(price, low), high), 2)
    if draws.uniform() < _PRICE_RANGE:
        end = round(min(start * draws.uniform(1.1, 1.6), high), 2)
        if end > start:
            return start, end
    return (start,)


def _product(
    config: CatalogueSettings, draft: Draft, family: list[Draft], asin: str, seed: int, index: int
) -> Generated:
    kind, rivals = draft.type, [other for other in family if other is not draft]
    item = listing(draft, Draws("webshop-text", seed, index)) | {
        "product_category": _PATH.join((draft.department.title(), kind.group, kind.plural.title())),
        "category": draft.department,
        "query": kind.plural,
        "asin": asin,
        "pricing": " - ".join(f"${price:.2f}" for price in draft.prices),
        "average_rating": "",
        "images": [],
        "customization_options": {
            name: [{"value": value} for value in values] for name, values in draft.options.items()
        },
    }
    draws = Draws("webshop-instruction", seed, index)
    attributes = {"attributes": list(draft.attributes)}
    if draws.uniform() < config.instructed:
        phrases = _selective(draft, rivals, draws)
        attributes["instruction"] = request(INSTRUCTIONS, kind, phrases, draws)
        attributes["instruction_attributes"] = phrases
    draws = Draws("webshop-human", seed, index)
    human = [_wish(draft, rivals, asin, draws)] if draws.uniform() < config.human else []
    return Generated(item, attributes, human, kind.nouns)


def _wish(draft: Draft, rivals: list[Draft], asin: str, draws: Draws) -> dict:
    phrases = _selective(draft, rivals, draws)
    chosen = [(name, draws.pick(values)) for name, values in draft.options.items()]
    named = draws.pick(chosen) if chosen and draws.uniform() < _NAMED_OPTION else None
    return {
        "asin": asin,
        "instruction": request(WISHES, draft.type, phrases, draws, named),
        "attributes": list(draft.attributes),
        # As in the official file, a product without options gets one empty entry.
        "options": [f"{name}: {value}" for name, value in chosen] or [""],
        "instruction_attributes": phrases,
        "instruction_options": [named[1]] if named else [],
    }


def _selective(draft: Draft, rivals: list[Draft], draws: Draws) -> list[str]:
    """Draw several sets of 1 to 3 attributes; return the one that the fewest `rivals` also have."""
    choices = [draws.some(draft.attributes, draws.between((1, 3))) for _ in range(_ATTEMPTS)]
    return min(choices, key=lambda choice: sum(set(choice) <= set(r.attributes) for r in rivals))
