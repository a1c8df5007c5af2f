"""The reward, rule by rule, with numbers worked out by hand."""

import pytest
from hypothesis import strategies as st

from hgrpo.games.webshop.records import NO_LIMIT, Goal, Item, Product
from hgrpo.games.webshop.reward import (
    COLOURS,
    attribute_hits,
    normalise,
    option_hits,
    reward,
    title_score,
    type_reward,
)


def product(**changes) -> Product:
    fields = {
        "asin": "B0TEST",
        "title": "Steel Travel Mug",
        "description": "Keeps tea warm.",
        "bullet_points": ("easy clean lid", "fits most cars"),
        "prices": (20.0,),
        "category": "kitchen",
        "query": "travel mugs",
        "product_category": "Kitchen \u203a Drinks \u203a Travel Mugs",
        "options": {"color": ("red", "blue")},
        "attributes": ("leak proof", "double wall"),
    }
    return Product(**(fields | changes))


def item(nouns=("steel", "travel", "mug"), price=20.0, **changes) -> Item:
    return Item(0, product(**changes), price, nouns)


OTHER = {"query": "teapots", "product_category": "Garden \u203a Tea \u203a Teapots"}


@pytest.mark.parametrize(
    ("bought", "target", "score"),
    [
        (("mug", "steel"), ("steel", "travel", "mug"), 2 / 3),
        (("mug", "mug"), ("mug",), 1.0),
        (("mug",), ("mug", "mug"), 0.5),
        (("pot",), ("mug",), 0.0),
        ((), ("mug",), 0.0),
        (("mug",), (), 0.2),
        ((), (), 0.2),
    ],
)
def test_title_score(bought, target, score):
    assert title_score(bought, target) == pytest.approx(score, abs=1e-15)


@pytest.mark.parametrize(
    ("changes", "score", "factor"),
    [
        # The same query is enough, whatever the titles say, unless they share next to nothing.
        ({"product_category": "A"}, 0.2, 1.0),
        ({"product_category": "A"}, 0.1, 1.0),
        ({"product_category": "A"}, 0.0999, 0.1),
        ({"product_category": "A"}, 0.0, 0.0),
        # Two parts of the path, in any order.
        ({"query": "x", "product_category": "Drinks \u203a Other \u203a Kitchen"}, 0.15, 1.0),
        ({"query": "x", "product_category": "Kitchen \u203a Other"}, 0.15, 0.5),
        # A part that is listed twice counts once.
        ({"query": "x", "product_category": "Kitchen \u203a Kitchen"}, 0.15, 0.5),
        # Titles alone: above 0.2, not at it.
        (OTHER, 0.2001, 1.0),
        (OTHER, 0.2, 0.5),
        (OTHER, 0.05, 0.1),
        (OTHER, 0.0, 0.0),
    ],
)
def test_type_reward(changes, score, factor):
    assert type_reward(product(**changes), product(), score) == factor


@pytest.mark.parametrize(
    ("attributes", "hits"),
    [
        (("leak proof",), 1),
        (("proof leak",), 1),  # token sets: 100
        (("leak-proof",), 1),  # punctuation is a space
        (("easy clean",), 1),  # in a bullet point
        (("tea warm",), 1),  # in the description
        (("travel mug",), 1),  # in the title, lower case
        (("Travel Mug",), 0),  # the goal's own capitals are not lowered
        (("lid fits",), 1),  # bullet points are joined by one space
        (("mug keeps",), 0),  # title and description are not
        (("water proof",), 0),  # token_set_ratio("leak proof", "water proof") = 76
        (("leak proof", "easy clean", "gluten free"), 2),
        ((), 0),
    ],
)
def test_attribute_hits(attributes, hits):
    assert attribute_hits(product(), attributes) == hits


def test_a_fuzzy_score_of_85_is_no_hit():
    # rapidfuzz: 2 * 12 matching letters of 14 + 14 = 85.7, which thefuzz rounds to 86: a hit.
    assert attribute_hits(product(attributes=("abcdefghijklmn",)), ["abcdefghijklxy"]) == 1
    # 2 * 17 of 20 + 20 = 85.0: none.
    assert (
        attribute_hits(product(attributes=("abcdefghijklmnopqrst",)), ["abcdefghijklmnopqxyz"]) == 0
    )


@pytest.mark.parametrize(
    ("chosen", "options", "hits"),
    [
        # A person's options are bare values, normalised on both sides.
        (("navy blue",), ("blue",), 1),  # both become "blue", before "navy" can be found
        (("dark red",), ("light red",), 0),  # "dark" and "light" come first
        (("large",), ("large",), 1),
        (("x-large",), ("large",), 1),  # tokens {x, large} contain {large}
        (("small",), ("large",), 0),
        # One choice may answer two options, and an option counts once.
        (("large",), ("large", "size large"), 2),
        (("large", "large wide"), ("large",), 1),
        ((), ("large",), 0),
        (("large",), (), 0),
        # Synthetic options are pairs: the text of the tuple, name and all.
        (("large",), (("size", "large"),), 1),
        (("red",), (("color", "red"),), 1),
        # A chosen colour is normalised, the pair is not: {blue} is in {color, navy, blue}.
        (("navy blue",), (("color", "navy blue"),), 1),
        # "gold" comes before "rose" in the list, and is a token of the pair.
        (("rose gold",), (("color", "rose gold"),), 1),
        # The choice becomes "tan", of which the pair's text holds no token.
        (("tangerine",), (("color", "tangerine"),), 0),
        # A person's option is normalised as well: both are "tan".
        (("tangerine",), ("tangerine",), 1),
        # A pair's value that is a colour and nothing else is normalised: "blue" meets "blue".
        (("sky blue",), (("color", "blue"),), 1),
        # The text of the pair contains the option's name, so choosing the name matches too.
        (("size",), (("size", "large"),), 1),
        # 2 * 12 letters of 14 + 14 = 85.7, rounded to 86; 2 * 17 of 20 + 20 = 85.0.
        (("bcdfhjklmnpqrs",), ("bcdfhjklmnpqxy",), 1),
        (("bcdfhjklmnpqrstvwxyz",), ("bcdfhjklmnpqrstvwccc",), 0),
    ],
)
def test_option_hits(chosen, options, hits):
    assert option_hits(chosen, options) == hits


def test_colours():
    assert normalise("navy blue") == "blue"
    assert normalise("plain") == "plain"
    assert normalise("tanned") == "tan"
    assert normalise(("color", "blue")) == "blue"
    assert normalise(("color", "navy blue")) == "('color', 'navy blue')"
    assert normalise(("gold", "small")) == "gold"
    assert list(COLOURS) == sorted(COLOURS)
    assert len(set(COLOURS)) == len(COLOURS)


@pytest.mark.parametrize(
    ("bought", "chosen", "goal", "total"),
    [
        # 2 attributes, 1 option, price: (2 + 1 + 1) / 4.
        ({}, {"color": "red"}, {}, 1.0),
        # The wrong colour: 3 / 4.
        ({}, {"color": "blue"}, {}, 0.75),
        # Nothing chosen, too dear: 2 / 4.
        ({"price": 30.01}, {}, {}, 0.5),
        # The limit itself is allowed.
        ({"price": 30.0}, {"color": "red"}, {}, 1.0),
        # No limit in the sentence.
        ({"price": 5000.0}, {"color": "red"}, {"price_limit": NO_LIMIT}, 1.0),
        # The kind's factor is 0.5: 0.5 * (0 + 1 + 1) / 4.
        (
            {**OTHER, "attributes": ("x",), "bullet_points": (), "nouns": ("a", "mug", "b")},
            {"color": "red"},
            {"wanted_nouns": ("mug", "c", "d", "e", "f")},
            0.25,
        ),
        # The same query, but one noun of eleven: the kind's factor is 0.1, and 0.1 * 4 / 4.
        (
            {"nouns": ("mug",)},
            {"color": "red"},
            {"wanted_nouns": ("mug", *"abcdefghij")},
            0.1,
        ),
        # One noun of ten is enough for the factor 1.
        ({"nouns": ("mug",)}, {"color": "red"}, {"wanted_nouns": ("mug", *"abcdefghi")}, 1.0),
        # A title without nouns scores 0.2: the factor is 1 with the same query, else 0.5.
        ({}, {"color": "red"}, {"wanted_nouns": ()}, 1.0),
        (OTHER, {"color": "red"}, {"wanted_nouns": ()}, 0.5),
        # The price that was drawn counts, not the range that the page shows.
        ({"prices": (10.0, 90.0), "price": 25.0}, {"color": "red"}, {}, 1.0),
        ({"prices": (10.0, 90.0), "price": 31.0}, {"color": "red"}, {}, 0.75),
        # A person asked for two options, and the colour matches: (2 + 1 + 1) / 5.
        ({}, {"color": "navy blue"}, {"options": ("sky blue", "large")}, 0.8),
        # Another thing altogether: 0.
        ({**OTHER, "nouns": ("pot",)}, {"color": "red"}, {}, 0.0),
        # Without options: (2 + 1) / 3.
        ({}, {"color": "blue"}, {"options": ()}, 1.0),
    ],
)
def test_reward(bought, chosen, goal, total):
    goal = dict(goal)
    target = item(nouns=goal.pop("wanted_nouns", ("steel", "travel", "mug")))
    fields = {
        "row": 0,
        "text": "",
        "attributes": ("leak proof", "double wall"),
        "options": (("color", "red"),),
        "price_limit": 30.0,
    }
    paid = reward(item(**bought), target, Goal(**(fields | goal)), chosen)
    assert paid.total == pytest.approx(total, abs=1e-15)


WORDS = st.lists(st.sampled_from(["red", "mug", "easy clean", "leak proof", "large"]), max_size=4)
