"""Generated shops: in the official format, within their bounds, and told apart only by reading."""

import json
import re
from collections import Counter
from itertools import combinations, islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from hgrpo.games.webshop import settings as env_webshop
from hgrpo.games.webshop.departments import BRANDS, DEPARTMENTS, ProductType
from hgrpo.games.webshop.draws import Draws
from hgrpo.games.webshop.generator import (
    HUMAN_FILE,
    INSTRUCTIONS_FILE,
    NOUNS_FILE,
    PRODUCTS_FILE,
    SYLLABLES,
    Generated,
    asins,
    families,
    generate,
    write,
)
from hgrpo.games.webshop.records import Product
from hgrpo.games.webshop.reward import attribute_hits, option_hits
from hgrpo.games.webshop.settings import CatalogueSettings

FILES = (PRODUCTS_FILE, INSTRUCTIONS_FILE, HUMAN_FILE, NOUNS_FILE)
TYPES = [(name, kind) for name, sold in DEPARTMENTS.items() for kind in sold.types]
BY_QUERY = {kind.plural: kind for _, kind in TYPES}
POOLS = sorted({pool for _, kind in TYPES for pool in kind.options})


def made(seed: int = 0, **knobs) -> list[Generated]:
    return list(generate(CatalogueSettings(**({"products": 300} | knobs)), seed))


def description(product: Generated) -> str:
    item = product.item
    lines = (item["name"], item["full_description"], *item["small_description"])
    return "\n".join(lines).lower()


def options(product: Generated) -> dict[str, list[str]]:
    listed = product.item["customization_options"]
    return {name: [entry["value"] for entry in entries] for name, entries in listed.items()}


def prices(product: Generated) -> list[float]:
    return [float(part.removeprefix("$")) for part in product.item["pricing"].split(" - ")]


# --- The vocabulary ---


@pytest.mark.parametrize(
    ("noun", "expected"),
    [
        ("travel mug", "travel mugs"),
        ("litter box", "litter boxes"),
        ("jersey", "jerseys"),
        ("berry", "berries"),
    ],
)
def test_plurals(noun, expected):
    assert ProductType(noun, "", (1, 2), ()).plural == expected


def test_no_two_types_share_a_noun():
    nouns = Counter(noun for _, kind in TYPES for noun in kind.nouns)
    assert [noun for noun, count in nouns.items() if count > 1] == []
    assert all(kind.nouns for _, kind in TYPES)
    assert len(BY_QUERY) == len(TYPES)


def test_the_reward_tells_the_attributes_of_a_department_apart():
    for sold in DEPARTMENTS.values():
        for one, other in combinations(sold.attributes, 2):
            bare = Product("B0", "", "", (), (1.0,), "", "", "", {}, (one,))
            assert attribute_hits(bare, [one]) == 1
            assert attribute_hits(bare, [other]) == 0, (one, other)


def test_the_reward_tells_the_values_of_an_option_apart():
    for name, values in POOLS:
        assert len(set(values)) == len(values)
        for value in values:
            assert option_hits([value], [value]) == option_hits([value], [(name, value)]) == 1
            for other in set(values) - {value}:
                assert option_hits([other], [value]) == 0, (other, value)
                assert option_hits([other], [(name, value)]) == 0, (other, value)


def test_the_reward_tells_the_options_of_a_type_apart():
    for _, kind in TYPES:
        for (_, values), (name, others) in combinations(kind.options, 2):
            for value in values:
                for other in others:
                    assert option_hits([value], [other]) == 0, (kind.name, value, other)
                    assert option_hits([value], [(name, other)]) == 0, (kind.name, value, other)


# --- Asins ---


@pytest.mark.parametrize(("products", "length"), [(1, 6), (85**2, 6), (85**2 + 1, 8)])
def test_asins_differ_and_are_as_short_as_the_shop_allows(products, length):
    assert len(SYLLABLES) == 85
    names = list(asins(products, 3))
    assert len(set(names)) == len(names) == products
    assert all(re.fullmatch(r"B0([B-Z][AEIOU])+", name) for name in names)
    assert {len(name) for name in names} == {length}


# --- Draws ---


def test_draws_are_even_and_repeat():
    draws = Draws("test", 0)
    counts = Counter(draws.between((1, 10)) for _ in range(5000))
    assert sum((counts[i] - 500) ** 2 / 500 for i in range(1, 11)) < 27.9  # 9 degrees, p = 0.001
    first = Counter(draws.some("abcde", 2)[0] for _ in range(5000))
    assert sum((first[i] - 1000) ** 2 / 1000 for i in "abcde") < 18.5  # 4 degrees, p = 0.001
    again = [[Draws("test", seed).uniform() for seed in (1, 1, 2)] for _ in range(2)]
    assert again[0] == again[1]
    assert again[0][0] == again[0][1] != again[0][2]


# --- The catalogue ---


BOUNDS = {
    "family": (1, 12),
    "attributes": (1, 8),
    "option_names": (0, 3),
    "option_values": (1, 5),
}


@st.composite
def configs(draw):
    bounds = {
        name: tuple(sorted(draw(st.tuples(st.integers(*limits), st.integers(*limits)))))
        for name, limits in BOUNDS.items()
    }
    names = st.lists(st.sampled_from(env_webshop.DEPARTMENTS), min_size=1, unique=True)
    return CatalogueSettings(
        products=draw(st.integers(1, 40)),
        departments=tuple(draw(names)),
        instructed=draw(st.sampled_from([0.0, 0.5, 1.0])),
        human=draw(st.sampled_from([0.0, 0.5, 1.0])),
        **bounds,
    )


@given(configs(), st.integers(0, 2**32))
@settings(max_examples=30)
def test_every_knob_keeps_its_bounds_and_every_text_is_true(config, seed):
    products = list(generate(config, seed))
    assert len(products) == config.products
    assert len({product.item["asin"] for product in products}) == config.products
    for product in products:
        item, attributes = product.item, product.attributes["attributes"]
        kind, sold = BY_QUERY[item["query"]], DEPARTMENTS[item["category"]]
        assert item["category"] in config.departments
        assert kind in sold.types
        assert set(attributes) <= set(sold.attributes)
        assert (
            config.attributes[0] <= len(set(attributes)) == len(attributes) <= config.attributes[1]
        )
        chosen = options(product)
        assert config.option_names[0] <= len(chosen) <= config.option_names[1]
        for name, values in chosen.items():
            assert config.option_values[0] <= len(values) <= config.option_values[1]
            assert values == [value for value in dict(kind.options)[name] if value in values]
        assert kind.prices[0] <= prices(product)[0] <= prices(product)[-1] <= kind.prices[1]
        assert sorted(set(prices(product))) == prices(product)
        check_text(product, sold.attributes, attributes)
        check_requests(product, kind, attributes)
    for share, count in (
        (config.instructed, sum("instruction" in product.attributes for product in products)),
        (config.human, sum(len(product.human) for product in products)),
    ):
        assert count <= config.products * (share > 0)
        assert count >= config.products * (share == 1)


def check_text(product: Generated, known: tuple[str, ...], attributes: list[str]) -> None:
    item = product.item
    words = re.findall(r"\w+", item["name"].lower())
    assert 4 <= len(words) <= 8
    assert set(product.nouns) <= set(words)
    assert any(attribute in item["name"].lower() for attribute in attributes)
    lines = item["small_description"]
    assert 3 <= len(lines) <= 5
    assert len(set(lines)) == len(lines)
    assert all(3 <= len(line.split()) <= 6 for line in lines)
    assert 1 <= item["full_description"].count(".") <= 2
    assert {name for name in known if name in description(product)} <= set(attributes)
    assert "{" not in description(product)


def check_requests(product: Generated, kind, attributes: list[str]) -> None:
    requests = [product.attributes] if "instruction" in product.attributes else []
    for request in requests + product.human:
        text, phrases = request["instruction"], request["instruction_attributes"]
        assert 1 <= len(phrases) <= 3
        assert set(phrases) <= set(attributes)
        assert all(attribute in text for attribute in phrases)
        assert kind.name in text or kind.plural in text
        assert not any(brand.lower() in text.lower() for brand in BRANDS)
        assert product.item["name"].lower() not in text.lower()
        assert re.fullmatch(r"[\w ,']+", text)
    for request in product.human:
        listed = [entry.partition(": ")[::2] for entry in request["options"] if entry]
        assert [name for name, _ in listed] == list(options(product))
        assert all(value in options(product)[name] for name, value in listed)
        assert len(request["instruction_options"]) <= 1
        for value in request["instruction_options"]:
            assert value in dict(map(reversed, listed))
            assert re.search(rf"\b{value}\b", request["instruction"])
        assert request["instruction"] == request["instruction"].lower()


def test_shares_are_probabilities():
    products = made(products=1000, instructed=0.7, human=0.2)
    # Within five standard deviations of 1,000 draws.
    assert abs(sum("instruction" in p.attributes for p in products) - 700) < 73
    assert abs(sum(len(p.human) for p in products) - 200) < 64
    named = [wish for p in made(human=1.0, option_names=(1, 3)) for wish in p.human]
    assert abs(sum(bool(wish["instruction_options"]) for wish in named) - 180) < 43


@given(configs(), st.integers(0, 2**32))
@settings(max_examples=20)
def test_families_are_of_one_type_and_share_an_attribute(config, seed):
    for family in islice(families(config, seed), 8):
        assert config.family[0] <= len(family) <= config.family[1]
        first, *others = family
        for other in others:
            assert other.type is first.type
            assert set(other.attributes) & set(first.attributes)
            assert len(set(other.attributes) - set(first.attributes)) <= 2
            assert len(set(first.attributes) - set(other.attributes)) <= 2
            assert list(other.options) == list(first.options)


# --- Seeds and files ---


def test_a_product_depends_on_no_later_one():
    some, more = made(products=37, human=0.5), made(products=90, human=0.5)
    assert all(product in more for product in some)
    assert all(product not in some for product in made(seed=1, products=37, human=0.5))


def test_files_are_written_and_read_back(tmp_path):
    products = made(human=0.3, instructed=0.6)
    write(tmp_path / "new" / "shop", products)
    items, attributes, human, nouns = (
        json.loads((tmp_path / "new" / "shop" / name).read_bytes()) for name in FILES
    )
    assert items == [product.item for product in products]
    assert attributes == {p.item["asin"]: p.attributes for p in products}
    assert human == {p.item["asin"]: p.human for p in products if p.human}
    assert nouns == {p.item["asin"]: list(p.nouns) for p in products}
    assert 0 < len(human) < len(products)


def test_a_seed_gives_the_same_bytes(tmp_path):
    for folder, seed in (("a", 5), ("b", 5), ("c", 6)):
        write(tmp_path / folder, generate(CatalogueSettings(products=60), seed))
    for name in FILES:
        first = (tmp_path / "a" / name).read_bytes()
        assert first == (tmp_path / "b" / name).read_bytes()
        assert first != (tmp_path / "c" / name).read_bytes()


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"departments": ["kitchen", "kitchen"]}, "distinct values"),
        ({"family": [3, 13]}, "1 <= low <= high <= 12"),
        ({"attributes": [5, 2]}, "1 <= low <= high <= 8"),
    ],
)
def test_bad_settings_are_refused(knobs, message):
    with pytest.raises(ValidationError, match=message):
        CatalogueSettings(**knobs)
