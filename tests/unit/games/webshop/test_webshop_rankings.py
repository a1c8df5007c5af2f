"""What search lists is what Lucene lists: against rankings that Lucene gave, kept in a file.

`tests/data/webshop_rankings.json` says how Lucene was asked. Both sides break ties by asin,
whatever the order in which documents were indexed; Lucene does because the original's searcher asks
for it. Rankings are therefore compared as they are, and no tie is forgiven.
"""

import hashlib
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from places import PROJECT, SHARED

from hgrpo.games.webshop import generator, official
from hgrpo.games.webshop.index import build
from hgrpo.games.webshop.records import Item, Product
from hgrpo.games.webshop.settings import CatalogueSettings
from hgrpo.games.webshop.shop import CATALOGUE, Shop, build_index
from hgrpo.games.webshop.tables import write_catalogue

STORED = json.loads((PROJECT / "tests/data/webshop_rankings.json").read_bytes())
# Product text that may not be copied into the project.
SAMPLE = SHARED / "data/webshop_sample"


def read(folder: Path) -> list[Product]:
    entries = official.attributes(folder / "items_ins_v2.json", Counter())
    return list(official.products(folder / "items_shuffle.json", entries, None, Counter()))


@pytest.fixture(scope="module", params=["generated", "sample"])
def case(request, tmp_path_factory) -> tuple[dict, list[Product]]:
    """Stored rankings, and the products that they are of, in the order of the data files."""
    stored = STORED[request.param]
    if request.param == "sample":
        if not SAMPLE.is_dir():
            pytest.skip("needs the sample of official products, shared/data/webshop_sample")
        return stored, read(SAMPLE)
    folder = tmp_path_factory.mktemp("generated")
    config = CatalogueSettings(**stored["config"])
    generator.write(folder, generator.generate(config, stored["seed"]))
    return stored, read(folder)


@pytest.fixture(scope="module")
def listed(case, tmp_path_factory) -> list[list[str]]:
    """Asins that our shop lists for each stored query, as many as are stored."""
    stored, products = case
    folder = tmp_path_factory.mktemp("shop")
    items = [Item(row, p, p.prices[0], ()) for row, p in enumerate(products)]
    write_catalogue(folder / CATALOGUE, items)
    build_index(folder)
    shop = Shop(folder)
    return [
        [shop.item(row).product.asin for row in shop.search(query)[:10]]
        for query, _ in stored["rankings"]
    ]


def test_the_products_are_those_that_lucene_indexed(case):
    """Fails after an edit of the generator's text: then Lucene has to be asked again."""
    stored, products = case
    lines = sorted(f"{product.asin}\t{product.document}\n" for product in products)
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    assert digest == stored["documents_sha256"]


def test_the_first_ten_and_the_first_are_lucenes(case, listed):
    stored, _ = case
    theirs = [[asin for asin, _ in hits] for _, hits in stored["rankings"]]
    assert listed == theirs


def test_scores_are_lucenes_to_the_last_bit(case):
    stored, products = case
    index = build(product.document for product in products)
    for query, hits in stored["rankings"]:
        documents, scores = index.scores(query)
        ours = {products[d].asin: s for d, s in zip(documents.tolist(), scores, strict=True)}
        assert [ours[asin] for asin, _ in hits] == [np.float32(score) for _, score in hits], query
