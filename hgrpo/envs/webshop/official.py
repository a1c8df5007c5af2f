"""Reads the official data files as streams, and cleans them as the original does.

The rules are those of WebShop's `web_agent_site/engine`: `load_products` in `engine.py`, and
`goal.py`.
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
from typing import Any

from hgrpo.envs.panels import leave_out
from hgrpo.envs.webshop.json_stream import elements, excerpt, expect, texts
from hgrpo.envs.webshop.records import Instruction, Product
from hgrpo.errors import UserError

_ASIN_LENGTH = 10
_NO_PRICE = (100.0,)
_NO_ATTRIBUTES = ("DUMMY_ATTR",)


def products(
    items: Path, attributes: Mapping[str, dict], limit: int | None, counts: Counter[str]
) -> Iterator[Product]:
    """Yield the products of an `items_shuffle*.json`, one in memory at a time.

    Args:
        attributes: asin -> entry, from `attributes`.
        limit: how many records to read, including those left out; None reads all.
        counts: reason -> number of records left out or kept with a defect; updated here.

    Raises:
        UserError: the file is missing, is not an array or is cut off; raised when the stream
            reaches the mistake. A product whose field is missing or wrong is left out.
    """
    seen: set[str] = set()
    with closing(elements(items, b"[")) as records:
        for number, record in enumerate(islice(records, limit), 1):
            place = f"{items}: record {number}"
            try:
                asin = _text(expect(dict, record, place), "asin", place)
                if not asin:
                    raise UserError(f"{place}: asin: the text is empty")
                if asin == "nan" or len(asin) > _ASIN_LENGTH:
                    counts["product left out: asin is nan or longer than 10 characters"] += 1
                    continue
                if asin in seen:
                    counts["product left out: asin came before"] += 1
                    continue
                product = _product(record, attributes.get(asin, {}), f"{place} ({asin})")
            except UserError as error:
                leave_out(counts, "product", error, items.parent)
                continue
            if "attributes" not in attributes.get(asin, {}):
                counts["product without attributes: DUMMY_ATTR"] += 1
            if not record.get("pricing"):
                counts["product without a price: 100.0 dollars"] += 1
            seen.add(asin)
            yield product


def attributes(path: Path, counts: Counter[str]) -> dict[str, dict]:
    """Read an `items_ins_v2*.json`: asin -> the part of its entry that this project uses.

    An entry may have the keys `attributes` (tuple of phrases), `instruction` (text) and
    `instruction_attributes` (tuple of phrases). Equal phrases share memory, because the full file
    has 1.18 M entries. For `counts` and errors see `products`.
    """
    entries: dict[str, dict] = {}
    for asin, entry in elements(path, b"{"):
        try:
            entries[asin] = _entry(entry, f"{path}: {asin}")
        except UserError as error:
            leave_out(counts, "entry of attributes", error, path.parent)
    return entries


def _entry(entry: object, place: str) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    # As in the original, null means absent. Only `attributes` must not be null.
    for key, value in expect(dict, entry, place).items():
        if key == "instruction" and value is not None:
            kept[key] = expect(str, value, f"{place}: {key}")
        elif key == "attributes" or (key == "instruction_attributes" and value is not None):
            kept[key] = tuple(map(sys.intern, texts(value, f"{place}: {key}")))
    return kept


def human_instructions(path: Path, counts: Counter[str]) -> dict[str, list[Instruction]]:
    """Read `items_human_ins.json`: asin -> one or more instructions, in the file's order.

    As in the original, a text loses the full stops at its ends, because a goal adds a price limit
    after it. The key names the product; an entry's own `asin` is ignored. An instruction that names
    no attributes is left out. For `counts` and errors see `products`.
    """
    instructions: dict[str, list[Instruction]] = {}
    for asin, entries in elements(path, b"{"):
        kept = []
        for number, entry in enumerate(entries if isinstance(entries, list) else [entries], 1):
            try:
                instruction = _human(entry, f"{path}: {asin}: instruction {number}")
            except UserError as error:
                leave_out(counts, "human instruction", error, path.parent)
                continue
            if instruction.attributes:
                kept.append(instruction)
            else:
                counts["human instruction left out: no instruction_attributes"] += 1
        # If a key occurs twice, the later one counts, as in the original's JSON reader.
        instructions.pop(asin, None)
        if kept:
            instructions[asin] = kept
    return instructions


def synthetic_instruction(asin: str, entry: Mapping[str, Any]) -> Instruction:
    """The synthetic instruction in an entry of `attributes`; UserError if it names no attribute."""
    wanted = entry.get("instruction_attributes")
    if not wanted:
        raise UserError(f"{asin}: instruction_attributes: an instruction needs at least one")
    return Instruction(entry["instruction"], wanted, None)


def _human(entry: object, place: str) -> Instruction:
    entry = expect(dict, entry, place)
    return Instruction(
        _text(entry, "instruction", place).strip("."),
        _phrases(entry, "instruction_attributes", place),
        _phrases(entry, "instruction_options", place),
    )


def _product(record: dict, entry: dict, place: str) -> Product:
    points = record.get("small_description")
    return Product(
        asin=record["asin"],
        title=_text(record, "name", place),
        description=_text(record, "full_description", place),
        bullet_points=(
            (points,) if isinstance(points, str) else _phrases(record, "small_description", place)
        ),
        prices=_prices(record.get("pricing"), place),
        category=_text(record, "category", place),
        query=_text(record, "query", place).lower().strip(),
        product_category=_text(record, "product_category", place),
        options=_options(record, place),
        attributes=entry.get("attributes", _NO_ATTRIBUTES),
    )


def _prices(pricing: object, place: str) -> tuple[float, ...]:
    """One price, or the two ends of a range, in dollars; further prices are dropped.

    Like the original, this keeps only digits and dots, so a negative price loses its sign.
    """
    if not pricing:
        return _NO_PRICE
    parts = expect(str, pricing, f"{place}: pricing").split("$")[1:]
    prices = tuple(map(_dollars, parts))
    if not prices or not all(map(math.isfinite, prices)):
        raise UserError(f'{place}: pricing: no number after "$" in {excerpt(pricing)}')
    return prices[:2]


def _dollars(text: str) -> float:
    """The number that a text's digits and dots form; NaN if they form none."""
    try:
        return float(Decimal(re.sub(r"[^\d.]", "", text)))
    except InvalidOperation:
        return math.nan


def _options(record: dict, place: str) -> dict[str, tuple[str, ...]]:
    contents = _field(record, "customization_options", place)
    place = f"{place}: customization_options"
    options: dict[str, tuple[str, ...]] = {}
    for name, values in expect(dict, contents or {}, place).items():
        if values is None:
            continue
        inside = f"{place}: {name}"
        options[name.lower()] = tuple(
            _text(expect(dict, value, inside), "value", inside).strip().replace("/", " | ").lower()
            for value in expect(list, values, inside)
        )
    return options


def _field(record: dict, key: str, place: str) -> Any:
    if key not in record:
        raise UserError(f"{place}: {key}: the key is missing")
    return record[key]


def _text(record: dict, key: str, place: str) -> str:
    return expect(str, _field(record, key, place), f"{place}: {key}")


def _phrases(record: dict, key: str, place: str) -> tuple[str, ...]:
    return texts(_field(record, key, place), f"{place}: {key}")
