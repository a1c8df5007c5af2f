"""A shop: read-only catalogue and search index, shared by any number of sessions.

As in the original, products with equal scores are listed in ASIN order. Therefore the documents of
the index are in ASIN order, and a table maps them to catalogue rows.
"""

from functools import lru_cache
from pathlib import Path

import numpy as np

from hgrpo.errors import UserError
from hgrpo.games import tracking
from hgrpo.games.webshop.index import Index, build, mapped
from hgrpo.games.webshop.tables import Catalogue

CATALOGUE, INDEX = "catalogue.arrow", "index"
_ROWS = "rows.npy"
_HITS = 50
_CACHED_QUERIES = 4096


class Shop:
    """The shop in a folder of assets; `item` returns the product in a catalogue row.

    UserError if the catalogue or the index is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.catalogue = Catalogue(folder / CATALOGUE)
        self.item = self.catalogue.item
        self._index = Index.load(folder / INDEX)
        try:
            self._rows = mapped(folder / INDEX / _ROWS, np.int32)
        except (OSError, ValueError, EOFError) as error:
            raise UserError(f"{folder / INDEX / _ROWS}: not a table of rows ({error})") from None
        self.search = lru_cache(maxsize=_CACHED_QUERIES)(self._search)

    def _search(self, words: str) -> list[int]:
        """Rows of the best 50 hits, best first. The list is shared and must not be modified."""
        return self._rows[self._index.search(words, _HITS)].tolist()


def build_index(folder: Path) -> None:
    """Build the index of the catalogue in a folder."""
    catalogue = Catalogue(folder / CATALOGUE)
    rows = catalogue.by_asin()
    documents = (catalogue.read(row).product.document for row in rows.tolist())
    bar = tracking.bar(documents, desc="index", unit="product", total=len(rows))
    build(bar).save(folder / INDEX)
    np.save(folder / INDEX / _ROWS, rows)


@lru_cache(maxsize=2)
def open_shop(folder: Path) -> Shop:
    """The shop in a folder, opened once per process."""
    return Shop(folder)
