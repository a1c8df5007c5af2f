"""The catalogue on disk: an Arrow file, memory-mapped and shared by all processes.

Its rows are the products, in the order of the data files. A product is decoded when a page shows
it, and only the most recent ones are cached, so memory does not grow with the number of products.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hgrpo.envs.webshop.arrow_rows import ArrowRows, write_rows
from hgrpo.envs.webshop.records import Item, Product

_KEPT = 8192
_TEXTS = pa.list_(pa.string())
# The fields of `Product`, its options as names and values, and what an `Item` adds.
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


class Catalogue(ArrowRows):
    """Gives the product in each row; raises as `ArrowRows`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _SCHEMA, "catalogue")
        self.item = lru_cache(maxsize=_KEPT)(self.read)

    def items(self) -> Iterator[Item]:
        """Every item in order, read batch by batch and not cached."""
        records = (record for batch in self._batches for record in batch.to_pylist())
        for row, record in enumerate(records):
            yield _decode(row, record)

    def by_asin(self) -> np.ndarray:
        """Rows in the order of their asins, int32."""
        asins = [batch.column("asin") for batch in self._batches]
        return pc.sort_indices(pa.chunked_array(asins, pa.string())).to_numpy().astype(np.int32)

    def read(self, row: int) -> Item:
        """The item of a row, not cached (`item` caches). Raises as `record`."""
        return _decode(row, self.record(row))


def _decode(row: int, record: dict) -> Item:
    tuples = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record.items()
    }
    price, nouns = tuples.pop("price"), tuples.pop("nouns")
    options = zip(tuples.pop("option_names"), tuples.pop("option_values"), strict=True)
    product = Product(**tuples, options={name: tuple(values) for name, values in options})
    return Item(row, product, price, nouns)


def _record(item: Item) -> dict:
    fields = {name: getattr(item.product, name) for name in Product.__slots__}
    options = fields.pop("options")
    return fields | {
        "option_names": list(options),
        "option_values": list(options.values()),
        "price": item.price,
        "nouns": item.nouns,
    }
