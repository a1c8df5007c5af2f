"""The catalogue on disk: an Arrow file, memory-mapped and shared by all processes.

Rows are products in the order of the data files. A product is decoded when a page shows it, and the
most recent ones are cached, so memory grows with the products visited and not with those sold.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hgrpo.envs.webshop.arrow_rows import ArrowRows, write_rows
from hgrpo.envs.webshop.records import Item, Product
from hgrpo.errors import UserError

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
    """Write items; their rows must count from 0."""
    write_rows(path, _SCHEMA, map(_record, items))


class Catalogue:
    """Products by row.

    Raises:
        UserError: the file is missing or is not a catalogue.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows = ArrowRows(path, _SCHEMA, "catalogue")
        self.item = lru_cache(maxsize=_KEPT)(self.read)

    def __len__(self) -> int:
        return len(self._rows)

    def items(self) -> Iterator[Item]:
        """Every item in order, read batch by batch and not cached."""
        row = 0
        for batch in self._rows.batches:
            for record in batch.to_pylist():
                yield _decode(row, record)
                row += 1

    def by_asin(self) -> np.ndarray:
        """Rows in the order of their asins, int32."""
        asins = pa.chunked_array(
            [batch.column("asin") for batch in self._rows.batches], pa.string()
        )
        return pc.sort_indices(asins).to_numpy().astype(np.int32)

    def read(self, row: int) -> Item:
        """Read the item of a row; `item` caches the most recent ones.

        Raises:
            UserError: the catalogue has no such row.
        """
        if not 0 <= row < len(self):
            raise UserError(
                f"{self._path}: product {row} was asked for, but it holds {len(self)}; "
                "run the assets stage again"
            )
        return _decode(row, self._rows.record(row))


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
