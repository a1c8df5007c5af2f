"""The official data files: cleaned by the original's rules, and never half read in silence."""

import json
import math
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import SHARED

from hgrpo.envs.webshop.official import (
    attributes,
    human_instructions,
    products,
    synthetic_instruction,
)
from hgrpo.envs.webshop.records import Instruction, Product
from hgrpo.errors import UserError

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
    found = list(products(write(path / "items.json", records), entries or {}, limit, counts))
    return found, counts


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
        ("", (100.0,)),
        (None, (100.0,)),
    ],
)
def test_prices(tmp_path, pricing, prices):
    assert one(tmp_path, pricing=pricing)[0].prices == prices


@pytest.mark.parametrize(
    ("pricing", "odd"),
    [("$5.00", 0), ("$1,299.00 to $1,399.50", 0), ("$-5.00", 1), ("$1e3", 1), ("$5 or so", 1)],
)
def test_prices_that_are_no_plain_numbers_are_counted(tmp_path, pricing, odd):
    _, counts = load(tmp_path, [MUG | {"pricing": pricing}])
    name = "product with a price that is no plain number: its digits and dots are kept"
    assert counts[name] == odd


def test_a_product_without_the_key_pricing_costs_a_hundred(tmp_path):
    record = {key: value for key, value in MUG.items() if key != "pricing"}
    (product,), counts = load(tmp_path, [record])
    assert product.price_tag == "$100.0"
    assert counts["product without a price: 100.0 dollars"] == 1


@given(st.lists(st.decimals(0, 10**6, places=2), min_size=1, max_size=4))
def test_whatever_number_follows_a_dollar_sign_is_read(tmp_path_factory, amounts):
    pricing = " - ".join(f"${amount:,}" for amount in amounts)
    product, counts = one(tmp_path_factory.mktemp("shop"), pricing=pricing)
    assert product.prices == tuple(float(amount) for amount in amounts[:2])
    assert sum(counts.values()) == (len(amounts) > 2)


@pytest.mark.parametrize(
    ("text", "points"), [("All in one", ("All in one",)), ("", ("",)), ([], ())]
)
def test_bullet_points_may_be_one_text_or_none(tmp_path, text, points):
    assert one(tmp_path, small_description=text)[0].bullet_points == points


@pytest.mark.parametrize("nothing", [None, "", {}, []])
def test_no_options(tmp_path, nothing):
    assert one(tmp_path, customization_options=nothing)[0].options == {}


def test_options_that_repeat_or_collide_are_kept_and_counted(tmp_path):
    product, counts = one(
        tmp_path,
        customization_options={
            "Color": [{"value": "red"}],
            "COLOR": [{"value": "red"}, {"value": "Red "}],
            "trim": [{"value": "RED"}],
            "none": [],
        },
    )
    assert product.options == {"color": ("red", "red"), "trim": ("red",), "none": ()}
    assert counts == {
        "product with an option name twice: the later values are kept": 1,
        "product with an option value twice under one name: kept": 1,
        "product with an option value under two names: kept": 1,
    }


def test_what_is_left_out_counts_towards_the_limit(tmp_path):
    asins = ["nan", "B0000000001", "A", "A", "B", "C"]
    records = [MUG | {"asin": asin, "name": str(i)} for i, asin in enumerate(asins)]
    found, counts = load(tmp_path, records, limit=5)
    assert [(product.asin, product.title) for product in found] == [("A", "2"), ("B", "4")]
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
    found, _ = load(tmp_path, records, entries)
    assert [p.attributes for p in found] == [(), ("DUMMY_ATTR",), ("DUMMY_ATTR",)]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1" * 400])
def test_numbers_that_the_original_reads_and_does_not_use(tmp_path, number):
    path = tmp_path / "items.json"
    path.write_text(json.dumps([MUG | {"average_rating": "?"}, MUG]).replace('"?"', number))
    assert len(list(products(path, {}, None, Counter()))) == 1


def test_images_are_not_needed(tmp_path):
    record = {key: value for key, value in MUG.items() if key not in ("images", "average_rating")}
    assert len(load(tmp_path, [record])[0]) == 1


@pytest.mark.parametrize("key", sorted(MUG.keys() - {"pricing", "images", "average_rating"}))
def test_a_missing_field_is_named(tmp_path, key):
    record = {name: value for name, value in MUG.items() if name != key}
    place = r"items\.json: record 2" + ("" if key == "asin" else r" \(B000000001\)")
    found, counts = load(tmp_path, [MUG | {"asin": "A"}, record])
    assert [product.asin for product in found] == ["A"]
    assert re.search(rf"^bad product, .* {place}: {key}: the key is missing$", bad(counts))
    assert counts == {bad(counts): 1, "product without attributes: DUMMY_ATTR": 1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"asin": 7}, "asin: text was expected, not 7"),
        ({"asin": ""}, "asin: the text is empty"),
        ({"name": None}, "name: text was expected, not None"),
        ({"full_description": ["x"]}, r"full_description: text was expected, not \['x'\]"),
        ({"small_description": None}, "small_description: a list of texts was expected, not None"),
        ({"small_description": ["x", 1]}, "small_description: a list of texts was expected"),
        ({"query": 1}, "query: text was expected, not 1"),
        ({"query": math.nan}, "query: text was expected, not nan"),
        ({"pricing": 5}, "pricing: text was expected, not 5"),
        ({"pricing": "ask us"}, "pricing: no number after \"\\$\" in 'ask us'"),
        ({"pricing": "$5 - $"}, "pricing: no number after"),
        ({"pricing": "$1.2.3"}, "pricing: no number after"),
        ({"pricing": "$" + "9" * 400}, "pricing: too large a number in .*9{20}\\.\\.\\.$"),
        ({"customization_options": "Size"}, "customization_options: an object was expected"),
        ({"customization_options": {"S": 3}}, "customization_options: S: a list was expected"),
        ({"customization_options": {"S": [3]}}, "customization_options: S: an object was expected"),
        ({"customization_options": {"S": [{}]}}, "customization_options: S: value: the key is"),
        ({"customization_options": {"S": [{"value": 3}]}}, "S: value: text was expected, not 3"),
    ],
)
def test_a_wrong_value_is_named(tmp_path, changes, message):
    found, counts = load(tmp_path, [MUG | changes, MUG, MUG | {"asin": "B"} | changes])
    assert [product.asin for product in found] == ["B000000001"]
    assert re.search(rf"items\.json: record 1.*: {message}", bad(counts))
    assert counts[bad(counts)] == 2


def test_a_record_that_is_no_object_is_named(tmp_path):
    found, counts = load(tmp_path, [MUG, 7])
    assert len(found) == 1
    assert bad(counts).endswith("items.json: record 2: an object was expected, not 7")


def test_no_cut_passes_as_a_whole_file(tmp_path):
    record = dict.fromkeys(MUG, "x") | {"pricing": "", "customization_options": None}
    whole = json.dumps([record, record | {"asin": "y"}], indent=1).encode()
    path = tmp_path / "items.json"
    path.write_bytes(whole)
    assert len(list(products(path, {}, None, Counter()))) == 2
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(UserError, match=r"items\.json: .*(cut off after entry|is empty)"):
            list(products(path, {}, None, Counter()))


def test_a_cut_is_named_after_the_products_before_it(tmp_path):
    path = tmp_path / "items.json"
    path.write_text(json.dumps([MUG, MUG | {"asin": "B"}])[:-20])
    found = []
    with pytest.raises(UserError, match=r"broken or cut off after entry 1 \(.*\)$"):
        found.extend(product.asin for product in products(path, {}, None, Counter()))
    assert found == ["B000000001"]


def test_only_the_head_of_a_file_is_read_for_a_limit(tmp_path):
    path = tmp_path / "items.json"
    path.write_text(json.dumps([MUG, MUG | {"asin": "B"}]) + "broken" * 100_000)
    assert len(list(products(path, {}, 1, Counter()))) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a JSON array was expected; the file is empty"),
        (b" \n", "a JSON array was expected; the file is empty"),
        (b'{"item": []}', "a JSON array was expected; the file begins with '{'"),
        (b"<html>", "a JSON array was expected; the file begins with '<'"),
        (b"\xef\xbb\xbf{}", "a JSON array was expected; the file begins with '{'"),
        (b"[]]", "broken or cut off after entry 0 (more after the closing ']')"),
        (b'["\xff"]', "after entry 0: text that is not UTF-8"),
        (b'[{"asin": "\x07"}]', "broken or cut off after entry 0 (Invalid control character at)"),
        (b'[{"asin": 0x1}]', "broken or cut off after entry 0 (Expecting ',' delimiter)"),
    ],
)
def test_a_file_of_another_kind_is_named(tmp_path, content, message):
    path = tmp_path / "items.json"
    path.write_bytes(content)
    pattern = re.escape(message)
    with pytest.raises(UserError, match=rf"^{path}: (the JSON is )?{pattern}"):
        list(products(path, {}, None, Counter()))


@pytest.mark.parametrize(
    "read",
    [
        lambda path: list(products(path, {}, None, Counter())),
        lambda path: attributes(path, Counter()),
        lambda path: human_instructions(path, Counter()),
    ],
)
def test_a_path_that_cannot_be_read_is_named(tmp_path, read):
    with pytest.raises(UserError, match=r"nowhere\.json: cannot be read \(No such file"):
        read(tmp_path / "nowhere.json")
    with pytest.raises(UserError, match=rf"{tmp_path}: cannot be read \(Is a directory\)"):
        read(tmp_path)


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


def test_a_synthetic_instruction_asks_for_every_option(tmp_path):
    entry = {"instruction": "Find me mugs.", "instruction_attributes": ["grey"]}
    expected = Instruction("Find me mugs.", ("grey",), None)
    entries = attributes(write(tmp_path / "ins.json", {"A": entry}), Counter())
    assert synthetic_instruction("A", entries["A"]) == expected


@pytest.mark.parametrize("wanted", [{}, {"instruction_attributes": []}])
def test_a_synthetic_instruction_needs_attributes(wanted):
    with pytest.raises(UserError, match="^A: instruction_attributes: an instruction needs"):
        synthetic_instruction("A", {"instruction": "Find me mugs"} | wanted)


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
    path.write_text("{" + ", ".join(f'"A": {json.dumps(entry)}' for entry in entries[:2]) + "}")
    assert [one.text for one in human_instructions(path, Counter())["A"]] == ["x"]
    path.write_text("{" + ", ".join(f'"A": {json.dumps(entry)}' for entry in entries) + "}")
    assert human_instructions(path, Counter()) == {}


@pytest.mark.parametrize(
    ("read", "content", "message"),
    [
        (attributes, {"A": []}, r"A: an object was expected, not \[\]"),
        (attributes, {"A": {"attributes": None}}, "A: attributes: a list of texts was"),
        (attributes, {"A": {"attributes": "grey"}}, "A: attributes: a list of texts was"),
        (attributes, {"A": {"instruction": 1}}, "A: instruction: text was expected, not 1"),
        (attributes, {"A": {"instruction_attributes": [1]}}, "A: instruction_attributes: a list"),
        (human_instructions, {"A": 7}, "A: instruction 1: an object was expected, not 7"),
        (human_instructions, {"A": [1]}, "A: instruction 1: an object was expected, not 1"),
        (
            human_instructions,
            {"A": [human(), human(instruction=None)]},
            "A: instruction 2: instruction: text was expected, not None",
        ),
        (
            human_instructions,
            {"A": [human(instruction_attributes="grey")]},
            "A: instruction 1: instruction_attributes: a list of texts was expected",
        ),
        (
            human_instructions,
            {"A": [{"instruction": "x", "instruction_attributes": []}]},
            "A: instruction 1: instruction_options: the key is missing",
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


@pytest.mark.parametrize("read", [attributes, human_instructions])
def test_a_file_of_entries_of_another_kind_is_named(tmp_path, read):
    with pytest.raises(UserError, match=r"a JSON object was expected; the file begins with '\['"):
        read(write(tmp_path / "file.json", []), Counter())


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path):
    path = tmp_path / "items.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps([MUG]).encode())
    assert len(list(products(path, {}, None, Counter()))) == 1


def test_the_official_sample_loads():
    if not SAMPLE.is_dir():
        pytest.skip(f"the official sample is not on this machine: {SAMPLE}")
    counts: Counter[str] = Counter()
    entries = attributes(SAMPLE / "items_ins_v2.json", Counter())
    found = list(products(SAMPLE / "items_shuffle.json", entries, None, counts))
    raw = json.loads((SAMPLE / "items_shuffle.json").read_text(encoding="utf-8"))
    assert [p.asin for p in found] == [record["asin"] for record in raw]
    assert [p.title for p in found] == [record["name"] for record in raw]
    assert [p.description for p in found] == [record["full_description"] for record in raw]
    assert found[0].price_tag == "$26.44 to $69.99"
    assert not counts
    asked = [
        synthetic_instruction(a, entry) for a, entry in entries.items() if "instruction" in entry
    ]
    assert len(asked) == 77
    asked = human_instructions(SAMPLE / "items_human_ins.json", counts)
    assert len(asked) == sum(map(len, asked.values())) == 7
    assert asked.keys() <= {p.asin for p in found}
