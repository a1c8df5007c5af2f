"""A shop: catalogue and search index, shared and read-only, for any number of sessions.

Products with equal scores are listed by asin, as the original lists them: the index holds the
documents in that order, and a table leads back to the catalogue's rows.
"""

from functools import lru_cache
from pathlib import Path

import numpy as np
from tqdm import tqdm

from hgrpo.envs.webshop.catalogue import Catalogue
from hgrpo.envs.webshop.index import Index, build
from hgrpo.envs.webshop.records import Item

CATALOGUE, INDEX = "catalogue.arrow", "index"
_ROWS = "rows.npy"
_HITS = 50
_KEPT_QUERIES = 4096


class Shop:
    """The shop in a folder of assets.

    Raises:
        UserError: the folder holds no catalogue or no index.
    """

    def __init__(self, folder: Path) -> None:
        self.catalogue = Catalogue(folder / CATALOGUE)
        self._index = Index.load(folder / INDEX)
        self._rows = np.load(folder / INDEX / _ROWS, mmap_mode="r")
        self.search = lru_cache(maxsize=_KEPT_QUERIES)(self._search)

    def item(self, row: int) -> Item:
        """The product in a row of the catalogue."""
        return self.catalogue.item(row)

    def _search(self, words: str) -> list[int]:
        """Rows of the best 50 hits, best first. Callers must not change the list."""
        return self._rows[self._index.search(words, _HITS)].tolist()


def build_index(folder: Path) -> None:
    """Index the catalogue of a folder."""
    catalogue = Catalogue(folder / CATALOGUE)
    rows = catalogue.by_asin()
    documents = (catalogue.read(row).product.document for row in rows.tolist())
    bar = tqdm(documents, desc="index", unit="product", total=len(rows), mininterval=1)
    build(bar).save(folder / INDEX)
    np.save(folder / INDEX / _ROWS, rows)


@lru_cache(maxsize=2)
def open_shop(folder: Path) -> Shop:
    """The shop of a folder, opened once per process."""
    return Shop(folder)
