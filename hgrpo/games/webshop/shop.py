"""A shop: a read-only catalogue and its search index. Any number of sessions can share a shop.

As in the original, search results with equal scores are listed in ASIN order. The documents of the
index are therefore in ASIN order. The array in `_ROWS` contains the catalogue row of each document.
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
    """The shop in a folder of assets. `item` returns the product in the given catalogue row.

    Raises UserError if the catalogue or the index is missing or damaged.
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
        """Catalogue rows of the best 50 results, best first. Do not modify this cached list."""
        return self._rows[self._index.search(words, _HITS)].tolist()


def build_index(folder: Path) -> None:
    """Build the search index of the catalogue in a folder."""
    catalogue = Catalogue(folder / CATALOGUE)
    rows = catalogue.by_asin()
    documents = (catalogue.read(row).product.document for row in rows.tolist())
    bar = tracking.bar(documents, desc="index", unit="product", total=len(rows))
    build(bar).save(folder / INDEX)
    np.save(folder / INDEX / _ROWS, rows)


@lru_cache(maxsize=2)
def open_shop(folder: Path) -> Shop:
    """Open the shop in a folder, once per process."""
    return Shop(folder)
