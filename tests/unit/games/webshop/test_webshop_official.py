"""The official data files: cleaned by the original's rules, and never half read in silence."""

import json
import math
import re
from collections import Counter
from pathlib import Path

import pytest
from places import SHARED

from hgrpo.errors import UserError
from hgrpo.games.webshop.official import (
    attributes,
    human_instructions,
    products,
    synthetic_instruction,
)
from hgrpo.games.webshop.records import Instruction, Product

SAMPLE = SHARED / "data/webshop_sample"

MUG = {
    "asin": "B000000001",
    "name": "Stone Mug",
    "full_description": "Holds <b>tea</b>.\u0007",
    "small_description": ["Hand made ", "Grey"],
    "product_category": "Kitchen \u203a Cups",
    "category": "garden",
    "query": " Tea Mugs ",
    "pricing": "$1,026.44 - $69.99",
    "average_rating": 4.5,
    "images": [],
    "customization_options": {
        "Color": [{"value": " Grey/Blue ", "image": None}, {"value": "RED"}],
        "Size": None,
    },
}


def write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def load(path: Path, records: list, entries: dict | None = None, limit: int | None = None):
    counts: Counter[str] = Counter()
    sold = list(products(write(path / "items.json", records), entries or {}, limit, counts))
    return sold, counts


def bad(counts: Counter[str]) -> str:
    """The only reason that counts bad records."""
    (reason,) = (reason for reason in counts if reason.startswith("bad "))
    return reason


def one(path: Path, **changes: object) -> tuple[Product, Counter[str]]:
    (product,), counts = load(path, [MUG | changes], {"B000000001": {"attributes": ("bpa free",)}})
    return product, counts


def test_a_product_is_cleaned_by_hand_computed_rules(tmp_path):
    product, counts = one(tmp_path)
    assert product == Product(
        asin="B000000001",
        title="Stone Mug",
        description="Holds <b>tea</b>.\u0007",
        bullet_points=("Hand made ", "Grey"),
        prices=(1026.44, 69.99),
        category="garden",
        query="tea mugs",
        product_category="Kitchen \u203a Cups",
        options={"color": ("grey | blue", "red")},
        attributes=("bpa free",),
    )
    assert product.price_tag == "$1026.44 to $69.99"
    assert product.document == (
        "stone mug holds <b>tea</b>.\u0007 hand made  color: grey | blue, red"
    )
    assert not counts


@pytest.mark.parametrize(
    ("pricing", "prices"),
    [
        ("$11.07", (11.07,)),
        ("from $5 to $6 or $7", (5.0, 6.0)),
        ("-$5.00", (5.0,)),
        ("$-5.00", (5.0,)),
        ("USD $ 1 234.50 only", (1234.5,)),
        ("$1,000.00 to $2,000.00", (1000.0, 2000.0)),
        ("$\u0663", (3.0,)),
        ("", (100.0,)),
        (None, (100.0,)),
    ],
)
def test_prices(tmp_path, pricing, prices):
    product, counts = one(tmp_path, pricing=pricing)
    assert product.prices == prices
    assert counts == ({} if pricing else {"product without a price: 100.0 dollars": 1})


def test_of_an_option_that_is_named_twice_the_later_values_count(tmp_path):
    values = [{"value": "red"}], [{"value": "blue"}, {"value": "Blue "}]
    options = {"Color": values[0], "COLOR": values[1], "none": []}
    product, _ = one(tmp_path, customization_options=options)
    assert product.options == {"color": ("blue", "blue"), "none": ()}


@pytest.mark.parametrize(
    ("text", "points"), [("All in one", ("All in one",)), ("", ("",)), ([], ())]
)
def test_bullet_points_may_be_one_text_or_none(tmp_path, text, points):
    assert one(tmp_path, small_description=text)[0].bullet_points == points


def test_what_is_left_out_counts_towards_the_limit(tmp_path):
    asins = ["nan", "B0000000001", "A", "A", "B", "C"]
    records = [MUG | {"asin": asin, "name": str(i)} for i, asin in enumerate(asins)]
    sold, counts = load(tmp_path, records, limit=5)
    assert [(product.asin, product.title) for product in sold] == [("A", "2"), ("B", "4")]
    assert counts == {
        "product left out: asin is nan or longer than 10 characters": 2,
        "product left out: asin came before": 1,
        "product without attributes: DUMMY_ATTR": 2,
    }
    assert [p.asin for p in load(tmp_path, records)[0]] == ["A", "B", "C"]


def test_attributes_may_be_missing_or_empty(tmp_path):
    path = write(tmp_path / "ins.json", {"A": {"attributes": []}, "B": {"instruction": "Find me"}})
    entries = attributes(path, Counter())
    records = [MUG | {"asin": asin} for asin in "ABC"]
    sold, _ = load(tmp_path, records, entries)
    assert [p.attributes for p in sold] == [(), ("DUMMY_ATTR",), ("DUMMY_ATTR",)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"asin": ""}, "asin: String should have at least 1 character, not ''"),
        ({"query": math.nan}, "query: Input should be a valid string, not nan"),
        ({"pricing": "ask us"}, "pricing: Value error, no number after \"\\$\", not 'ask us'"),
        ({"pricing": "$1.2.3"}, "pricing: Value error, no number after"),
        ({"pricing": "$" + "9" * 400}, "pricing: Value error, no number after"),
        ({"customization_options": {"S": [{}]}}, "customization_options: S: 0: value: Field"),
    ],
)
def test_a_wrong_value_is_named(tmp_path, changes, message):
    sold, counts = load(tmp_path, [MUG | changes, MUG, MUG | {"asin": "B"} | changes])
    assert [product.asin for product in sold] == ["B000000001"]
    assert re.search(rf"items\.json: record 1.*: {message}", bad(counts))
    assert counts[bad(counts)] == 2


def test_no_cut_passes_as_a_whole_file(tmp_path):
    record = dict.fromkeys(MUG, "x") | {"pricing": "", "customization_options": None}
    whole = json.dumps([record, record | {"asin": "y"}], indent=1).encode()
    path = tmp_path / "items.json"
    path.write_bytes(whole)
    assert len(list(products(path, {}, None, Counter()))) == 2
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(
            UserError, match=r"items\.json: .*(truncated JSON after entry|is empty)"
        ):
            list(products(path, {}, None, Counter()))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b" \n", "expected a JSON array, but the file is empty"),
        (b"\xef\xbb\xbf{}", "expected a JSON array, but the file begins with '{'"),
        (b'["\xff"]', "the text after entry 0 is not UTF-8"),
        (b'[{"asin": 0x1}]', "truncated JSON after entry 0 (Expecting ',' delimiter)"),
        (b"[" * 200_000, "the JSON after entry 0 is nested too deeply"),
    ],
)
def test_a_file_of_another_kind_is_named(tmp_path, content, message):
    path = tmp_path / "items.json"
    path.write_bytes(content)
    pattern = re.escape(message)
    with pytest.raises(UserError, match=rf"^{path}: (invalid or )?{pattern}"):
        list(products(path, {}, None, Counter()))


def test_attribute_entries_keep_three_keys(tmp_path):
    entries = attributes(
        write(
            tmp_path / "ins.json",
            {
                "A": {
                    "attributes": ["bpa free", "grey"],
                    "instruction": "Find me bpa free mugs.",
                    "instruction_attributes": ["bpa free"],
                    "more": 1,
                },
                "B": {"attributes": [], "instruction": None, "instruction_attributes": None},
                "C": {},
            },
        ),
        Counter(),
    )
    assert entries == {
        "A": {
            "attributes": ("bpa free", "grey"),
            "instruction": "Find me bpa free mugs.",
            "instruction_attributes": ("bpa free",),
        },
        "B": {"attributes": ()},
        "C": {},
    }
    assert entries["A"]["attributes"][0] is entries["A"]["instruction_attributes"][0]


def test_a_synthetic_instruction_needs_attributes():
    with pytest.raises(UserError, match="^A: instruction_attributes: expected at least one"):
        synthetic_instruction("A", {"instruction": "Find me mugs", "instruction_attributes": []})


def human(**changes: object) -> dict:
    return {
        "asin": "A",
        "instruction": "i need a mug...",
        "attributes": ["grey", "bpa free"],
        "options": ["color: red"],
        "instruction_attributes": ["grey"],
        "instruction_options": ["red"],
    } | changes


def test_human_instructions(tmp_path):
    counts: Counter[str] = Counter()
    path = write(
        tmp_path / "human.json",
        {
            "A": [human(), human(instruction_attributes=[]), human(instruction="B", asin="?")],
            "B": [human(instruction_attributes=[], instruction_options=[])],
            "C": [human(instruction_options=[])],
        },
    )
    assert human_instructions(path, counts) == {
        "A": [
            Instruction("i need a mug", ("grey",), ("red",)),
            Instruction("B", ("grey",), ("red",)),
        ],
        "C": [Instruction("i need a mug", ("grey",), ())],
    }
    assert counts == {"human instruction left out: no instruction_attributes": 2}


def test_of_a_key_that_stands_twice_the_later_counts(tmp_path):
    path = tmp_path / "human.json"
    entries = [[human()], [human(instruction="x")], [human(instruction_attributes=[])]]
    path.write_text(
        "{" + ", ".join(f'"A": {json.dumps(entry)}' for entry in entries[:2]) + "}",
        encoding="utf-8",
    )
    assert [one.text for one in human_instructions(path, Counter())["A"]] == ["x"]
    path.write_text(
        "{" + ", ".join(f'"A": {json.dumps(entry)}' for entry in entries) + "}", encoding="utf-8"
    )
    assert human_instructions(path, Counter()) == {}


@pytest.mark.parametrize(
    ("read", "content", "message"),
    [
        (attributes, {"A": {"attributes": None}}, "A: attributes: Input should be a valid tuple"),
        (
            human_instructions,
            {"A": [human(), human(instruction=None)]},
            "A: instruction 2: instruction: Input should be a valid string, not None",
        ),
    ],
)
def test_a_wrong_entry_is_named(tmp_path, read, content, message):
    counts: Counter[str] = Counter()
    others = {"attributes": []} if read is attributes else [human()]
    path = write(tmp_path / "file.json", content | {"B": others})
    assert "B" in read(path, counts)
    assert re.search(rf"file\.json: {message}", bad(counts))
    assert counts[bad(counts)] == 1


def test_the_official_sample_loads():
    if not SAMPLE.is_dir():
        pytest.skip(f"the official sample is not on this machine: {SAMPLE}")
    counts: Counter[str] = Counter()
    entries = attributes(SAMPLE / "items_ins_v2.json", Counter())
    sold = list(products(SAMPLE / "items_shuffle.json", entries, None, counts))
    raw = json.loads((SAMPLE / "items_shuffle.json").read_bytes())
    assert [p.asin for p in sold] == [record["asin"] for record in raw]
    assert [p.title for p in sold] == [record["name"] for record in raw]
    assert [p.description for p in sold] == [record["full_description"] for record in raw]
    assert sold[0].price_tag == "$26.44 to $69.99"
    assert not counts
    instructions = [
        synthetic_instruction(a, entry) for a, entry in entries.items() if "instruction" in entry
    ]
    assert len(instructions) == 77
    instructions = human_instructions(SAMPLE / "items_human_ins.json", counts)
    assert len(instructions) == sum(map(len, instructions.values())) == 7
    assert instructions.keys() <= {p.asin for p in sold}
