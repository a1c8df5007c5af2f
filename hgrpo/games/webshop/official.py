"""Streams records from the official data files, and cleans them as the original does.

The rules are those of `load_products` in `engine.py` and of `goal.py`, both in the folder
`web_agent_site/engine` of WebShop.
"""

import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from decimal import Decimal, InvalidOperation
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from hgrpo.errors import UserError
from hgrpo.games.panels import leave_out
from hgrpo.games.webshop.json_stream import checked, elements
from hgrpo.games.webshop.records import Instruction, Product

_ASIN_LENGTH = 10
_NO_PRICE = (100.0,)
_NO_ATTRIBUTES = ("DUMMY_ATTR",)
Phrases = tuple[str, ...]


def _prices(pricing: object) -> tuple[float, ...]:
    """Parse a price, or both ends of a price range, in dollars; any further price is dropped.

    As in the original, all characters except digits and dots are removed, including a minus sign.
    """
    if not pricing:
        return _NO_PRICE
    prices = tuple(map(_dollars, str(pricing).split("$")[1:]))
    if not prices or not all(map(math.isfinite, prices)):
        raise ValueError('no number after "$"')
    return prices[:2]


def _dollars(text: str) -> float:
    try:
        return float(Decimal(re.sub(r"[^\d.]", "", text)))
    except InvalidOperation:
        return math.nan


class _Value(BaseModel):
    value: str


class _Record(BaseModel):
    asin: str = Field(min_length=1)
    name: str
    full_description: str
    small_description: str | Phrases
    product_category: str
    category: str
    query: str
    pricing: Annotated[tuple[float, ...], BeforeValidator(_prices)] = _NO_PRICE
    customization_options: Annotated[
        dict[str, list[_Value] | None], BeforeValidator(lambda options: options or {})
    ]


class _Entry(BaseModel):
    """An entry in `items_ins_v2*.json`. As in the original, only `attributes` is required."""

    attributes: Phrases = ()
    instruction: str | None = None
    instruction_attributes: Phrases | None = None


class _Wish(BaseModel):
    instruction: str
    instruction_attributes: Phrases
    instruction_options: Phrases


def products(
    items: Path, attributes: Mapping[str, dict], limit: int | None, counts: Counter[str]
) -> Iterator[Product]:
    """Stream the products in a file `items_shuffle*.json`, without those that have invalid fields.

    Args:
        attributes: the return value of the function `attributes`.
        limit: maximum number of records to read, including excluded ones; None reads all.
        counts: number of records that are excluded or have a field set to a default value, per
            reason; updated in place.

    Raises:
        UserError: the file is missing, truncated or not an array. The error is raised when the
            iteration reaches the mistake.
    """
    seen: set[str] = set()
    with closing(elements(items, b"[")) as records:
        for number, fields in enumerate(islice(records, limit), 1):
            try:
                record = checked(_Record, fields, f"{items}: record {number}")
            except UserError as error:
                leave_out(counts, "product", error, items.parent)
                continue
            if record.asin == "nan" or len(record.asin) > _ASIN_LENGTH:
                counts["product left out: asin is nan or longer than 10 characters"] += 1
            elif record.asin in seen:
                counts["product left out: asin came before"] += 1
            else:
                seen.add(record.asin)
                entry = attributes.get(record.asin, {})
                if "attributes" not in entry:
                    counts["product without attributes: DUMMY_ATTR"] += 1
                if not fields.get("pricing"):
                    counts["product without a price: 100.0 dollars"] += 1
                yield _product(record, entry.get("attributes", _NO_ATTRIBUTES))


def attributes(path: Path, counts: Counter[str]) -> dict[str, dict]:
    """Read a file `items_ins_v2*.json`; return each ASIN's entry as a dict of its fields.

    An entry may have the keys `attributes` (tuple of phrases), `instruction` (text) and
    `instruction_attributes` (tuple of phrases). To save memory, equal phrases share one object,
    because the full file has 1.18 M entries. For `counts` and errors, see `products`.
    """
    entries: dict[str, dict] = {}
    for asin, entry in elements(path, b"{"):
        try:
            entry = checked(_Entry, entry, f"{path}: {asin}")
        except UserError as error:
            leave_out(counts, "entry of attributes", error, path.parent)
            continue
        fields = entry.model_dump(exclude_unset=True, exclude_none=True)
        for key in fields.keys() - {"instruction"}:
            fields[key] = tuple(map(sys.intern, fields[key]))
        entries[asin] = fields
    return entries


def human_instructions(path: Path, counts: Counter[str]) -> dict[str, list[Instruction]]:
    """Read `items_human_ins.json`; return the instructions for each ASIN in file order.

    As in the original, full stops are stripped, because a price limit is appended later. The ASIN
    is the key of an entry; the field `asin` in the entry is ignored. Instructions without
    attributes are excluded. For `counts` and errors, see `products`.
    """
    instructions: dict[str, list[Instruction]] = {}
    for asin, entries in elements(path, b"{"):
        usable = []
        for number, entry in enumerate(entries if isinstance(entries, list) else [entries], 1):
            try:
                wish = checked(_Wish, entry, f"{path}: {asin}: instruction {number}")
            except UserError as error:
                leave_out(counts, "human instruction", error, path.parent)
                continue
            if phrases := wish.instruction_attributes:
                text = wish.instruction.strip(".")
                usable.append(Instruction(text, phrases, wish.instruction_options))
            else:
                counts["human instruction left out: no instruction_attributes"] += 1
        # If a key occurs twice, use the last entry, as WebShop's own JSON reader does.
        instructions.pop(asin, None)
        if usable:
            instructions[asin] = usable
    return instructions


def synthetic_instruction(asin: str, entry: Mapping[str, Any]) -> Instruction:
    """Create the instruction of an entry; raise UserError if the entry has no attributes."""
    phrases = entry.get("instruction_attributes")
    if not phrases:
        raise UserError(f"{asin}: instruction_attributes: expected at least one attribute")
    return Instruction(entry["instruction"], phrases, None)


def _product(record: _Record, attributes: Phrases) -> Product:
    points = record.small_description
    options = {
        name.lower(): tuple(v.value.strip().replace("/", " | ").lower() for v in values)
        for name, values in record.customization_options.items()
        if values is not None
    }
    return Product(
        asin=record.asin,
        title=record.name,
        description=record.full_description,
        bullet_points=(points,) if isinstance(points, str) else points,
        prices=record.pricing,
        category=record.category,
        query=record.query.lower().strip(),
        product_category=record.product_category,
        options=options,
        attributes=attributes,
    )
