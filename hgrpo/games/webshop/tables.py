"""Stores the products and goals of a shop as memory-mapped Arrow files, shared by all processes.

Records are decoded on access, and only the most recently used products are cached, so that memory
does not grow with the size of the shop.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hgrpo.errors import UserError
from hgrpo.games.webshop.records import Goal, Item, Product

_BATCH = 8192
_CACHED = 8192
_TEXTS = pa.list_(pa.string())
# These are the fields of `Product`, followed by the fields `price` and `nouns` of `Item`.
_ITEMS = pa.schema(
    [
        ("asin", pa.string()),
        ("title", pa.large_string()),
        ("description", pa.large_string()),
        ("bullet_points", pa.list_(pa.large_string())),
        ("prices", pa.list_(pa.float64())),
        ("category", pa.string()),
        ("query", pa.string()),
        ("product_category", pa.string()),
        ("option_names", _TEXTS),
        ("option_values", pa.list_(_TEXTS)),
        ("attributes", _TEXTS),
        ("price", pa.float64()),
        ("nouns", _TEXTS),
    ]
)
_GOALS = pa.schema(
    [
        ("row", pa.int32()),
        ("text", pa.string()),
        ("attributes", _TEXTS),
        # Null for human goals, whose options have no names.
        ("option_names", _TEXTS),
        ("option_values", _TEXTS),
        ("price_limit", pa.float64()),
    ]
)


class _Rows:
    """The records in a file that was written by `_write`.

    Args:
        what: description of the file in error messages.

    Raises:
        UserError: the file is missing, is not an Arrow file, or has a different schema.
    """

    def __init__(self, path: Path, schema: pa.Schema, what: str) -> None:
        try:
            reader = pa.ipc.open_file(pa.memory_map(str(path)))
        except FileNotFoundError:
            raise UserError(f"{path}: {what} not found; run the assets stage first") from None
        except (pa.ArrowInvalid, OSError) as error:
            raise UserError(f"{path}: not a {what} ({error})") from None
        if reader.schema != schema:
            raise UserError(f"{path}: {what} has a different schema; run the assets stage again")
        self._source = f"{path}: the {what}"
        self._batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        self._length = sum(batch.num_rows for batch in self._batches)

    def __len__(self) -> int:
        return self._length

    def record(self, row: int) -> dict:
        """Return the record of a row, counted from 0; raise UserError if there is no such row."""
        if not 0 <= row < len(self):
            raise UserError(
                f"{self._source} has {len(self)} rows, but no row {row}; run the assets stage again"
            )
        # All batches except the last one have the same number of rows.
        batch, place = divmod(row, _BATCH)
        return self._batches[batch].slice(place, 1).to_pylist()[0]


class Catalogue(_Rows):
    """All items of a shop, in the order of the data files. For errors, see `_Rows`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _ITEMS, "catalogue")
        self.item = lru_cache(maxsize=_CACHED)(self.read)

    def items(self) -> Iterator[Item]:
        """Iterate over all items in order, without caching them."""
        records = (record for batch in self._batches for record in batch.to_pylist())
        for row, record in enumerate(records):
            yield _item(row, record)

    def by_asin(self) -> np.ndarray:
        """Row numbers in the order of the products' ASINs, int32 [rows]."""
        asins = [batch.column("asin") for batch in self._batches]
        return pc.sort_indices(pa.chunked_array(asins, pa.string())).to_numpy().astype(np.int32)

    def read(self, row: int) -> Item:
        """Read the item in a row without caching it. For errors, see `record`."""
        return _item(row, self.record(row))


class GoalList(_Rows):
    """All goals of a shop. For errors, see `_Rows`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _GOALS, "file of goals")

    def texts(self) -> Iterator[str]:
        """The goals' texts, in order."""
        for batch in self._batches:
            yield from batch.column("text").to_pylist()

    def goal(self, number: int) -> Goal:
        """Return the goal with the index `number`. For errors, see `record`."""
        record = self.record(number)
        names, values = record.pop("option_names"), record.pop("option_values")
        options = tuple(values) if names is None else tuple(zip(names, values, strict=True))
        attributes = tuple(record.pop("attributes"))
        return Goal(**record, attributes=attributes, options=options)


def write_catalogue(path: Path, items: Iterable[Item]) -> None:
    """Write items. The `row` of each item must be its position, counted from 0."""
    _write(path, _ITEMS, map(_item_record, items))


def write_goals(path: Path, goals: Iterable[Goal]) -> None:
    """Write goals in order."""
    _write(path, _GOALS, map(_goal_record, goals))


def goal_hash(goal: Goal, item: Item) -> str:
    """SHA-256 (hex) of the content of a goal and its product."""
    request = goal.text, goal.attributes, goal.options, goal.price_limit
    content = json.dumps((item.product.asin, item.price, *request))
    return hashlib.sha256(content.encode()).hexdigest()


def _write(path: Path, schema: pa.Schema, records: Iterable[dict]) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        rest = iter(records)
        while batch := list(islice(rest, _BATCH)):
            writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=schema))


def _item(row: int, record: dict) -> Item:
    tuples = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record.items()
    }
    price, nouns = tuples.pop("price"), tuples.pop("nouns")
    options = zip(tuples.pop("option_names"), tuples.pop("option_values"), strict=True)
    product = Product(**tuples, options={name: tuple(values) for name, values in options})
    return Item(row, product, price, nouns)


def _item_record(item: Item) -> dict:
    fields = {name: getattr(item.product, name) for name in Product.__slots__}
    options = fields.pop("options")
    choices = {"option_names": list(options), "option_values": list(options.values())}
    return fields | choices | {"price": item.price, "nouns": item.nouns}


def _goal_record(goal: Goal) -> dict:
    named = [option for option in goal.options if isinstance(option, tuple)]
    synthetic = len(named) == len(goal.options)
    return {
        "row": goal.row,
        "text": goal.text,
        "attributes": goal.attributes,
        "option_names": [name for name, _ in named] if synthetic else None,
        "option_values": [value for _, value in named] if synthetic else goal.options,
        "price_limit": goal.price_limit,
    }
