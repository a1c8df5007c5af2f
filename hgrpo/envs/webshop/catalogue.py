"""The catalogue on disk: an Arrow file that all processes map instead of loading.

Rows are products in the order of the data files. A product is decoded when it is shown, and the
most recent ones are kept, so resident memory follows what is visited, not what is sold.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hgrpo.envs.webshop.records import Item, Product
from hgrpo.errors import UserError

_BATCH = 8192
_KEPT = 8192
_TEXTS = pa.list_(pa.string())
_SCHEMA = pa.schema(
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


def write_catalogue(path: Path, items: Iterable[Item]) -> None:
    """Write items, whose rows must count from 0."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, _SCHEMA) as writer:
        rest = iter(items)
        while batch := [_record(item) for item in islice(rest, _BATCH)]:
            writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=_SCHEMA))


class Catalogue:
    """Products by row.

    Raises:
        UserError: the file is missing or is not a catalogue.
    """

    def __init__(self, path: Path) -> None:
        try:
            reader = pa.ipc.open_file(pa.memory_map(str(path)))
        except FileNotFoundError:
            raise UserError(f"{path}: no such catalogue; run the assets stage first") from None
        except (pa.ArrowInvalid, OSError) as error:
            raise UserError(f"{path}: not a catalogue ({error})") from None
        if reader.schema != _SCHEMA:
            raise UserError(f"{path}: not a catalogue of this version; run the assets stage again")
        self._path = path
        self._batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        self._length = sum(batch.num_rows for batch in self._batches)
        self.item = lru_cache(maxsize=_KEPT)(self.read)

    def __len__(self) -> int:
        return self._length

    def items(self) -> Iterator[Item]:
        """Every item in order, a batch at a time, none of them kept."""
        row = 0
        for batch in self._batches:
            for record in batch.to_pylist():
                yield _decode(row, record)
                row += 1

    def by_asin(self) -> np.ndarray:
        """Rows in the order of their asins, int32."""
        asins = pa.chunked_array([batch.column("asin") for batch in self._batches], pa.string())
        return pc.sort_indices(asins).to_numpy().astype(np.int32)

    def read(self, row: int) -> Item:
        """The item of a row, read afresh; `item` keeps the most recent ones.

        Raises:
            UserError: there is no such row.
        """
        if not 0 <= row < self._length:
            raise UserError(
                f"{self._path}: product {row} was asked for, but it holds {self._length}; "
                "run the assets stage again"
            )
        # Every batch but the last is full.
        batch, place = divmod(row, _BATCH)
        return _decode(row, self._batches[batch].slice(place, 1).to_pylist()[0])


def _decode(row: int, record: dict) -> Item:
    product = Product(
        asin=record["asin"],
        title=record["title"],
        description=record["description"],
        bullet_points=tuple(record["bullet_points"]),
        prices=tuple(record["prices"]),
        category=record["category"],
        query=record["query"],
        product_category=record["product_category"],
        options={
            name: tuple(values)
            for name, values in zip(record["option_names"], record["option_values"], strict=True)
        },
        attributes=tuple(record["attributes"]),
    )
    return Item(row, product, record["price"], tuple(record["nouns"]))


def _record(item: Item) -> dict:
    product = item.product
    return {
        "asin": product.asin,
        "title": product.title,
        "description": product.description,
        "bullet_points": product.bullet_points,
        "prices": product.prices,
        "category": product.category,
        "query": product.query,
        "product_category": product.product_category,
        "option_names": list(product.options),
        "option_values": list(product.options.values()),
        "attributes": product.attributes,
        "price": item.price,
        "nouns": item.nouns,
    }
