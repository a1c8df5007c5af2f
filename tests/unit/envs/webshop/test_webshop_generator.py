"""Generated shops: in the official format, within their bounds, and told apart only by reading."""

import json
import re
from collections import Counter
from itertools import combinations, islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from hgrpo.envs.webshop import settings as env_webshop
from hgrpo.envs.webshop.departments import BRANDS, DEPARTMENTS, ProductType
from hgrpo.envs.webshop.draws import Draws
from hgrpo.envs.webshop.generator import (
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
from hgrpo.envs.webshop.records import Product
from hgrpo.envs.webshop.reward import attribute_hits, option_hits
from hgrpo.envs.webshop.settings import CatalogueSettings
from hgrpo.envs.webshop.wording import INSTRUCTIONS, WISHES

FILES = (PRODUCTS_FILE, INSTRUCTIONS_FILE, HUMAN_FILE, NOUNS_FILE)
BUTTONS = {
    "buy now",
    "description",
    "features",
    "reviews",
    "attributes",
    "< prev",
    "next >",
    "back to search",
    "search",
}
OPTION_NAMES = {"color", "size", "flavor name", "scent", "material", "style", "pack"}
TYPES = [(name, kind) for name, sold in DEPARTMENTS.items() for kind in sold.types]
BY_QUERY = {kind.plural: kind for _, kind in TYPES}
POOLS = sorted({pool for _, kind in TYPES for pool in kind.options})


def made(seed: int = 0, **knobs) -> list[Generated]:
    return list(generate(CatalogueSettings(**({"products": 300} | knobs)), seed))


def told(product: Generated) -> str:
    item = product.item
    lines = (item["name"], item["full_description"], *item["small_description"])
    return "\n".join(lines).lower()


def options(product: Generated) -> dict[str, list[str]]:
    listed = product.item["customization_options"]
    return {name: [entry["value"] for entry in entries] for name, entries in listed.items()}


def prices(product: Generated) -> list[float]:
    return [float(part.removeprefix("$")) for part in product.item["pricing"].split(" - ")]


# --- The vocabulary ---


def test_config_and_vocabulary_name_the_same_departments():
    assert tuple(DEPARTMENTS) == env_webshop.DEPARTMENTS
    assert len(DEPARTMENTS) == 12


@pytest.mark.parametrize(
    ("noun", "expected"),
    [
        ("travel mug", "travel mugs"),
        ("makeup brush", "makeup brushes"),
        ("litter box", "litter boxes"),
        ("toiletry pouch", "toiletry pouches"),
        ("jersey", "jerseys"),
        ("berry", "berries"),
        ("glass", "glasses"),
    ],
)
def test_plurals(noun, expected):
    assert ProductType(noun, "", (1, 2), ()).plural == expected


def test_no_two_types_share_a_noun():
    nouns = Counter(noun for _, kind in TYPES for noun in kind.nouns)
    assert [noun for noun, count in nouns.items() if count > 1] == []
    assert all(kind.nouns for _, kind in TYPES)
    assert len(BY_QUERY) == len(TYPES)


def test_departments_are_of_the_agreed_size():
    for name, sold in DEPARTMENTS.items():
        assert 6 <= len(sold.types) <= 8, name
        assert len(sold.attributes) == 15, name
        assert all(len(phrase.split()) == 2 for phrase in sold.attributes + sold.uses), name
        for kind in sold.types:
            assert len(dict(kind.options)) == 3, kind.name
            assert all(len(values) >= 5 for _, values in kind.options), kind.name
            assert kind.prices[0] < kind.prices[1], kind.name


def test_the_reward_tells_the_attributes_of_a_department_apart():
    for sold in DEPARTMENTS.values():
        for own, wanted in combinations(sold.attributes, 2):
            bare = Product("B0", "", "", (), (1.0,), "", "", "", {}, (own,))
            assert attribute_hits(bare, [own]) == 1
            assert attribute_hits(bare, [wanted]) == 0, (own, wanted)


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


def test_no_value_is_a_button_or_stands_under_two_names():
    assert {name for name, _ in POOLS} == OPTION_NAMES
    names: dict[str, set[str]] = {}
    for name, values in POOLS:
        for value in values:
            assert value == value.strip().lower()
            assert "/" not in value
            assert len(value.split()) <= 2
            names.setdefault(value, set()).add(name)
    assert [value for value, found in names.items() if len(found) > 1] == []
    assert set(names) & BUTTONS == set()


def test_brands_are_words_of_nothing_else():
    words = {word for _, kind in TYPES for word in kind.name.split()}
    for sold in DEPARTMENTS.values():
        words |= {word for phrase in sold.attributes + sold.uses for word in phrase.split()}
    assert len(set(BRANDS)) == len(BRANDS) >= 36
    assert {brand.lower() for brand in BRANDS} & words == set()


def test_sentences_are_many_and_open_to_what_the_goal_builder_adds():
    assert len(set(INSTRUCTIONS)) >= 12
    for sentence in INSTRUCTIONS + WISHES:
        assert sentence[-1] not in ".?!"
        assert "type" in sentence
        assert re.search(r"\{(a_)?commas\}|\{ands\}", sentence), sentence


# --- Asins ---


@pytest.mark.parametrize(("products", "length"), [(1, 6), (85**2, 6), (85**2 + 1, 8), (20_000, 8)])
def test_asins_differ_and_are_as_short_as_the_shop_allows(products, length):
    assert len(SYLLABLES) == 85
    names = list(asins(products, 3))
    assert len(set(names)) == len(names) == products
    assert all(re.fullmatch(r"B0([B-Z][AEIOU])+", name) for name in names)
    assert {len(name) for name in names} == {length}


def test_asins_fit_the_official_length_in_the_largest_shop():
    assert {len(name) for name in islice(asins(10_000_000, 0), 200)} == {10}


@given(st.integers(0, 2**32), st.integers(2, 10_000_000))
@settings(max_examples=30)
def test_neighbouring_asins_differ_in_the_first_syllable(seed, products):
    names = list(islice(asins(products, seed), 300))
    for start in range(max(1, len(names) - 11)):
        first = [name[2:4] for name in names[start : start + 12]]
        assert len(set(first)) == len(first)


# --- Draws ---


@given(st.integers(0, 2**32), st.integers(-5, 5), st.integers(0, 7), st.integers(0, 12))
def test_draws_stay_in_their_range(seed, low, span, count):
    draws = Draws("test", seed)
    assert low <= draws.between((low, low + span)) <= low + span
    items = list(range(10))
    assert draws.pick(items) in items
    found = draws.some(items, count)
    assert len(set(found)) == len(found) == min(count, 10)
    assert set(found) <= set(items) == set(range(10))


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


def test_records_are_in_the_official_format():
    products = made(human=1.0)
    assert len(products) == 300
    for product in products:
        item = product.item
        assert set(item) == {
            "name",
            "full_description",
            "small_description",
            "product_category",
            "category",
            "query",
            "asin",
            "pricing",
            "average_rating",
            "images",
            "customization_options",
        }
        texts = ("name", "full_description", "product_category", "category", "query", "asin")
        assert all(isinstance(item[key], str) and item[key] for key in texts)
        assert all(isinstance(line, str) for line in item["small_description"])
        assert item["product_category"].count(" \u203a ") == 2
        assert re.fullmatch(r"\$\d+\.\d\d( - \$\d+\.\d\d)?", item["pricing"])
        for name, entries in item["customization_options"].items():
            assert name in OPTION_NAMES
            assert all(set(entry) == {"value"} for entry in entries)
        entry = product.attributes
        assert set(entry) == {"attributes", "instruction", "instruction_attributes"}
        (wish,) = product.human
        assert set(wish) == {
            "asin",
            "instruction",
            "attributes",
            "options",
            "instruction_attributes",
            "instruction_options",
        }
        assert wish["asin"] == item["asin"]
        assert wish["attributes"] == entry["attributes"]
        assert json.loads(json.dumps([item, entry, wish])) == [item, entry, wish]


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
@settings(max_examples=60)
def test_every_knob_keeps_its_bounds_and_every_text_is_true(config, seed):
    products = list(generate(config, seed))
    assert len(products) == config.products
    assert len({product.item["asin"] for product in products}) == config.products
    for product in products:
        item, own = product.item, product.attributes["attributes"]
        kind, sold = BY_QUERY[item["query"]], DEPARTMENTS[item["category"]]
        assert item["category"] in config.departments
        assert kind in sold.types
        assert set(own) <= set(sold.attributes)
        assert config.attributes[0] <= len(set(own)) == len(own) <= config.attributes[1]
        chosen = options(product)
        assert config.option_names[0] <= len(chosen) <= config.option_names[1]
        for name, values in chosen.items():
            assert config.option_values[0] <= len(values) <= config.option_values[1]
            assert values == [value for value in dict(kind.options)[name] if value in values]
        assert kind.prices[0] <= prices(product)[0] <= prices(product)[-1] <= kind.prices[1]
        assert sorted(set(prices(product))) == prices(product)
        check_text(product, sold.attributes, own)
        check_requests(product, kind, own)
    for share, found in (
        (config.instructed, sum("instruction" in product.attributes for product in products)),
        (config.human, sum(len(product.human) for product in products)),
    ):
        assert found <= config.products * (share > 0)
        assert found >= config.products * (share == 1)


def check_text(product: Generated, known: tuple[str, ...], own: list[str]) -> None:
    item = product.item
    words = re.findall(r"\w+", item["name"].lower())
    assert 4 <= len(words) <= 8
    assert set(product.nouns) <= set(words)
    assert any(attribute in item["name"].lower() for attribute in own)
    lines = item["small_description"]
    assert 3 <= len(lines) <= 5
    assert len(set(lines)) == len(lines)
    assert all(3 <= len(line.split()) <= 6 for line in lines)
    assert 1 <= item["full_description"].count(".") <= 2
    assert {name for name in known if name in told(product)} <= set(own)
    assert "{" not in told(product)


def check_requests(product: Generated, kind, own: list[str]) -> None:
    requests = [product.attributes] if "instruction" in product.attributes else []
    for request in requests + product.human:
        text, wanted = request["instruction"], request["instruction_attributes"]
        assert 1 <= len(wanted) <= 3
        assert set(wanted) <= set(own)
        assert all(attribute in text for attribute in wanted)
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


def test_articles_agree_with_what_follows():
    products = made(products=1000, human=1.0)
    texts = [p.item["full_description"] for p in products]
    texts += [p.attributes["instruction"] for p in products]
    texts += [wish["instruction"] for p in products for wish in p.human]
    followed = [match for text in texts for match in re.findall(r"\b([Aa]n?) (\w+)", text)]
    assert len(followed) > 1000
    for article, word in followed:
        assert (article.lower() == "an") == (word[0] in "aeiou" and word != "uv"), (article, word)
    assert {("An", "oven"), ("an", "ankle"), ("a", "uv")} <= set(followed)


def test_most_attributes_are_told_and_all_bounds_are_reached():
    products = made(products=1000)
    known = [(name, told(p)) for p in products for name in p.attributes["attributes"]]
    assert sum(name in text for name, text in known) > 0.9 * len(known)
    assert {len(p.attributes["attributes"]) for p in products} == {2, 3, 4, 5}
    assert {len(options(p)) for p in products} == {0, 1, 2}
    assert {len(v) for p in products for v in options(p).values()} == {2, 3, 4}
    assert {len(prices(p)) for p in products} == {1, 2}
    assert {p.item["category"] for p in products} == set(DEPARTMENTS)


@given(configs(), st.integers(0, 2**32))
@settings(max_examples=60)
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


def test_a_shop_is_full_of_near_duplicates():
    by_query: dict[str, list[set[str]]] = {}
    for product in made(products=1000):
        own = set(product.attributes["attributes"])
        by_query.setdefault(product.item["query"], []).append(own)
    alone = sum(
        not any(own & other for other in group if other is not own)
        for group in by_query.values()
        for own in group
    )
    assert alone <= 1, "only a family cut short may leave a product without a near-duplicate"


def test_members_of_a_family_differ_and_mostly_in_what_can_be_asked_for():
    found = list(islice(families(CatalogueSettings(), 0), 300))
    for family in found:
        for one, other in combinations(family, 2):
            assert (set(one.attributes), one.options, one.brand, one.prices) != (
                set(other.attributes),
                other.options,
                other.brand,
                other.prices,
            )
    wants = [{(frozenset(d.attributes), str(d.options)) for d in family} for family in found]
    twins = sum(len(want) < len(family) for want, family in zip(wants, found, strict=True))
    assert twins < 0.05 * len(found)


def test_an_instruction_with_options_and_price_usually_singles_out_one_of_the_family():
    config = CatalogueSettings(products=1000, option_names=(1, 2), departments=("kitchen",))
    products = {product.item["asin"]: product for product in generate(config, 0)}
    drawn = [products[asin] for asin in asins(config.products, 0)]
    single = total = 0
    for family in families(config, 0):
        members, drawn = drawn[: len(family)], drawn[len(family) :]
        for target in members:
            total += 1
            single += sum(serves(other, target) for other in members) == 1
        if not drawn:
            break
    assert total == 1000
    assert single > 0.7 * total


def serves(bought: Generated, target: Generated) -> bool:
    """Whether it has all that the target's instruction asks for, with the first option values."""
    wanted = set(target.attributes["instruction_attributes"])
    values = {name: entries[0] for name, entries in options(target).items()}
    return (
        wanted <= set(bought.attributes["attributes"])
        and all(value in options(bought)[name] for name, value in values.items())
        and prices(bought)[0] <= prices(target)[-1] + 10
    )


# --- Seeds and files ---


def test_a_product_depends_on_no_later_one():
    some, more = made(products=37, human=0.5), made(products=90, human=0.5)
    assert all(product in more for product in some)
    assert all(product not in some for product in made(seed=1, products=37, human=0.5))


def test_requests_change_no_product():
    plain = made(instructed=0.0, human=0.0)
    asked = made(instructed=1.0, human=1.0)
    assert [product.item for product in plain] == [product.item for product in asked]
    assert all(product.human == [] for product in plain)
    assert all(set(product.attributes) == {"attributes"} for product in plain)


def test_families_do_not_stand_together_in_the_shop():
    queries = [product.item["query"] for product in made(products=1000)]
    together = sum(one == other for one, other in pairwise(queries))
    # 999 / 94 types are expected; unshuffled families of three to six would give some 780.
    assert together < 60


def test_a_large_shop_is_a_stream():
    shop = generate(CatalogueSettings(products=10_000_000), 0)
    assert len(next(shop).item["asin"]) == 10


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


def test_writing_replaces_older_files_and_may_write_none(tmp_path):
    write(tmp_path, made(products=20))
    write(tmp_path, [])
    assert [json.loads((tmp_path / name).read_bytes()) for name in FILES] == [[], {}, {}, {}]


def test_files_cut_short_by_an_error_are_not_json(tmp_path):
    def failing():
        yield from made(products=5, human=1.0)
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        write(tmp_path, failing())
    for name in FILES:
        with pytest.raises(json.JSONDecodeError):
            json.loads((tmp_path / name).read_bytes())


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"products": 0}, "products"),
        ({"products": 10_000_001}, "products"),
        ({"departments": []}, "at least one entry"),
        ({"departments": ["kitchen", "kitchen"]}, "distinct names"),
        ({"departments": ["kitchens"]}, "departments"),
        ({"family": [0, 3]}, "1 <= low <= high <= 12, not \\[0, 3\\]"),
        ({"family": [3, 13]}, "1 <= low <= high <= 12"),
        ({"attributes": [5, 2]}, "1 <= low <= high <= 8"),
        ({"attributes": [2, 9]}, "1 <= low <= high <= 8"),
        ({"option_names": [0, 4]}, "0 <= low <= high <= 3"),
        ({"option_values": [0, 4]}, "1 <= low <= high <= 5"),
        ({"option_values": [2, 6]}, "1 <= low <= high <= 5"),
        ({"instructed": 1.1}, "instructed"),
        ({"human": -0.1}, "human"),
        ({"brands": 3}, "brands"),
    ],
)
def test_bad_settings_are_refused(knobs, message):
    with pytest.raises(ValidationError, match=message):
        CatalogueSettings(**knobs)
