"""The shop's search: terms, rounded lengths and scores are Lucene's, and an index survives disk."""

import math
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hgrpo.errors import UserError
from hgrpo.games.webshop.analyser import analyse
from hgrpo.games.webshop.index import Index, build, quantise

SHOP = ["red shirt", "red red shoe hat", "blue"]


# Terms as Lucene 8.11 gives them for the same texts.
@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The Dog's men\u2019s WOMEN\uff07S dogs'", "dog men women dog"),
        ("don't o'neill 'tis s's", "don't o'neil ti s"),
        ('3.5 1,000 1:2 5" 4K/60 .5. 7.', "3.5 1,000 1 2 5 4k 60 5 7"),
        ("color:red size:10 a.b u.s.a. 1.a", "color:r size 10 a.b u.s.a 1"),
        ("snake_case __x__ ___ wi-fi", "snake_cas __x__ wi fi"),
        ("a\u02d7b x\u00b8b 5\u202fmm", "a\u02d7b x b 5\u202fmm"),
        ("👩\u200d👩👩 🇺🇸🇺🇸 #\ufe0f\u20e3", "👩\u200d👩 👩 🇺🇸 🇺🇸 #\ufe0f\u20e3"),
        ("Hollis® 5½ m² 90° ©2020 ✅★ 👍🏽", "holli ® 5 m 90 © 2020 ✅ ★ 👍🏽"),
        (
            "café cafe\u0301 \uff15\uff21 İ \u03a3\u03a3",
            "café cafe\u0301 \uff15\uff41 i \u03c3\u03c3",
        ),
        ("かな カタカナ 漢字 ไทย 한국어", "か な カタカナ 漢 字 ไทย 한국어"),
        ("technology technological analogies", "technolog technolog analog"),
        ("assembly assembled assemblies bubbly", "assembl assembl assembl bubbl"),
        ("trekking trek shopping selling", "trek trek shop sell"),
        ("possibly relational running ponies", "possibl relat run poni"),
        ("us as ss yes", "us ss ye"),
        ("to be or not to be", ""),
    ],
)
def test_terms_are_those_of_lucene(text, terms):
    assert analyse(text) == (terms.split(" ") if terms else [])


def test_long_words_are_cut_after_255_characters():
    assert [len(term) for term in analyse("x" * 600)] == [255, 255, 90]
    # Lucene sees 255 characters of it: the apostrophe is their last, and joins nothing.
    assert analyse("x" * 254 + "'mm") == ["x" * 254, "mm"]


@pytest.mark.parametrize(
    ("length", "stored"),
    [(40, 40), (41, 40), (55, 54), (56, 56), (59, 56), (87, 84), (88, 88), (95, 88), (96, 96)]
    + [(151, 144), (152, 152), (167, 152), (168, 168), (1000, 984)],
)
def test_lengths_from_40_on_are_rounded_down(length, stored):
    assert quantise(np.arange(40)).tolist() == list(range(40))
    # Steps of 2 from 40 = 24 + 16, of 4 from 56 = 24 + 32, of 8 from 88, 16 from 152, ...
    # 1000 = 24 + 976 lies between 24 + 15 * 64 = 984 and 24 + 16 * 64.
    assert quantise(np.array([length])).tolist() == [stored]


def test_scores_are_those_computed_by_hand():
    # Mean length 7/3. red is in 2 of 3 documents: idf ln(1 + 1.5 / 2.5) = 0.470004.
    # Norms 0.9 (0.6 + 0.4 * 2 * 3/7) = 0.848571 and 0.9 (0.6 + 0.4 * 4 * 3/7) = 1.157143.
    # 0.470004 * 1 / 1.848571 = 0.254252; 0.470004 * 2 / 3.157143 = 0.297740.
    documents, scores = build(SHOP).scores("red")
    assert documents.tolist() == [0, 1]
    assert scores.tolist() == pytest.approx([0.254252, 0.297740], abs=1e-6)
    assert build(SHOP).search("red") == [1, 0]


def test_shares_of_terms_add_up_and_a_repeated_term_counts_twice():
    index = build(SHOP)
    red = dict(zip(*map(np.ndarray.tolist, index.scores("red")), strict=True))
    # shirt is in 1 of 3: idf ln(1 + 2.5 / 1.5) = 0.980829; 0.980829 / 1.848571 = 0.530588.
    documents, scores = index.scores("red shirt unknown reds")
    assert documents.tolist() == [0, 1]
    assert scores.tolist() == pytest.approx([2 * red[0] + 0.530588, 2 * red[1]], abs=1e-6)
    assert index.search("red shirt") == [0, 1]


def test_documents_without_terms_do_not_count_as_documents():
    padded = build(["", "the", *SHOP])
    documents, scores = padded.scores("red")
    assert documents.tolist() == [2, 3]
    assert scores.tolist() == build(SHOP).scores("red")[1].tolist()


def test_ties_go_by_document_number():
    index = build(["hat", "red hat", *["blue shoe"] * 3, "red shoe", "blue shoe"])
    assert index.search("blue") == [2, 3, 4, 6]
    assert index.search("blue", k=2) == [2, 3]
    assert index.search("red blue", k=3) == [1, 5, 2]


# First six documents and scores that Lucene 8.11 finds with pyserini's settings.
LUCENE = {
    "red shoes": {
        17: 0.33073875308036804,
        35: 0.3303738236427307,
        29: 0.32862481474876404,
        11: 0.32813823223114014,
        37: 0.32626140117645264,
        23: 0.3257996141910553,
    },
    "size 7.5 leather size": {
        32: 1.0178331136703491,
        26: 0.9872378706932068,
        23: 0.9862930774688721,
        8: 0.9779750108718872,
        20: 0.9767158627510071,
        5: 0.9638938903808594,
    },
    "treks assembled technological®": {
        29: 0.8736122846603394,
        26: 0.8680016994476318,
        11: 0.8510810732841492,
        20: 0.8373656272888184,
        8: 0.8330667614936829,
        35: 0.8298016786575317,
    },
}


@pytest.mark.parametrize("query", LUCENE)
def test_rankings_and_scores_are_lucenes_to_the_last_bit(query):
    text = "women's trekking shoe in red leather, size 7.5 with easy assembly ® technology"
    words = text.split()
    index = build(
        " ".join(words[(i * j * j + j // 3) % len(words)] for j in range(5 + 37 * i % 110))
        for i in range(40)
    )
    scores = dict(zip(*map(np.ndarray.tolist, index.scores(query)), strict=True))
    ranking = index.search(query, k=6)
    assert {number: scores[number] for number in ranking} == LUCENE[query]
    assert ranking == list(LUCENE[query])


def brute_force(documents: list[str], query: str) -> dict[int, float]:
    """The formula read aloud, in the 32-bit steps in which Lucene computes it."""
    f32, bags = np.float32, [Counter(analyse(document)) for document in documents]
    filled = sum(map(bool, bags))
    mean = f32(sum(bag.total() for bag in bags) / max(filled, 1))
    scores: dict[int, float] = {}
    for number, bag in enumerate(bags):
        length = f32(quantise(np.array([bag.total()]))[0])
        for term, count in Counter(analyse(query)).items():
            df = sum(term in other for other in bags)
            weight = f32(count) * f32(math.log(1 + (filled - df + 0.5) / (df + 0.5)))
            if bag[term]:
                inverse = f32(1) / (f32(0.9) * ((f32(1) - f32(0.4)) + f32(0.4) * length / mean))
                share = weight - weight / (f32(1) + f32(bag[term]) * inverse)
                scores[number] = scores.get(number, 0.0) + float(share)
    return {number: float(f32(score)) for number, score in scores.items()}


def check_against_brute_force(documents: list[str], query: str, k: int) -> None:
    index, expected = build(documents), brute_force(documents, query)
    assert dict(zip(*map(np.ndarray.tolist, index.scores(query)), strict=True)) == expected
    best = sorted(expected, key=lambda number: (-expected[number], number))
    assert index.search(query, k) == best[:k]


SOLD = "red blue shoe shoes hat size 10 the of rarely é ™"
WORDS = st.lists(st.sampled_from(SOLD.split()))
TEXTS = WORDS.map(" ".join) | WORDS.map(lambda words: " ".join(words * 12))


@settings(max_examples=80)
@given(st.lists(TEXTS, max_size=40), TEXTS | st.text(), st.integers(1, 50))
def test_search_finds_what_the_formula_ranks(documents, query, k):
    check_against_brute_force(documents, query, k)


def test_rare_terms_in_many_documents_are_ranked_alike():
    documents = ["hat"] * 300
    documents[7], documents[130], documents[299] = "red hat", "red red", "red shoe blue"
    for query in ("red", "red blue", "red hat"):  # few postings, few, many
        check_against_brute_force(documents, query, 50)


@pytest.mark.parametrize(
    "query",
    ["", " \n\t", "the of and", "!?…—", "\x00\x01\x1b[31m", "\ud800", "漢字 ไทย שלום", "_" * 10_000]
    + ["x" * 10_000, "x'" * 5_000, "red " * 2_500, "\u200d" * 10_000, "e\u0301" * 5_000],
    ids=ascii,
)
def test_any_query_has_an_answer(query):
    hits = build(SHOP).search(query)
    assert hits == ([1, 0] if "red" in query else [])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Folder of the index of SHOP, to be left as it is."""
    place = tmp_path_factory.mktemp("search") / "index"
    build(SHOP).save(place)
    return place


@pytest.fixture
def folder(saved, tmp_path):
    """A copy of it."""
    return Path(shutil.copytree(saved, tmp_path / "index"))


@settings(max_examples=25)
@given(query=TEXTS)
def test_a_loaded_index_gives_identical_hits(saved, query):
    fresh, loaded = build(SHOP), Index.load(saved)
    for before, after in zip(fresh.scores(query), loaded.scores(query), strict=True):
        assert np.array_equal(before, after)
    assert loaded.search(query) == fresh.search(query)


def test_a_loaded_index_is_mapped_and_read_only(folder):
    index = Index.load(folder)
    for name in ("keys", "starts", "documents", "saturations"):
        array = getattr(index, name)
        assert isinstance(array.base, np.memmap)
        assert not array.flags.writeable


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "starts.npy").unlink(),
        lambda folder: (folder / "keys.npy").write_bytes(b"\x93NUMPY"),
        lambda folder: np.save(folder / "documents.npy", np.zeros(6, np.int64)),
        lambda folder: np.save(folder / "keys.npy", np.array(["red"], dtype=object)),
        lambda folder: (folder / "index.json").write_bytes(b'{"format": "bm25 0"}'),
        lambda folder: (folder / "index.json").write_bytes(b"[]"),
    ],
)
def test_a_damaged_index_is_named(folder, damage):
    damage(folder)
    with pytest.raises(UserError, match="index: the folder is not a search index"):
        Index.load(folder)
