"""Goals, prices and panels of a shop."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from webshop_fixtures import MUG, items, write_shop

from hgrpo.errors import UserError
from hgrpo.games.webshop.assets import panels
from hgrpo.games.webshop.goals import human_goal, in_order, synthetic_goals
from hgrpo.games.webshop.prices import limit_text, price, price_limit
from hgrpo.games.webshop.records import NO_LIMIT, Goal, Instruction
from hgrpo.games.webshop.settings import PanelsSettings
from hgrpo.games.webshop.shop import CATALOGUE
from hgrpo.games.webshop.tables import Catalogue, GoalList, goal_hash, write_goals

WISH = Instruction("Find me mugs", ("leak proof",), None)


def test_a_synthetic_instruction_asks_for_every_combination():
    mug = items()[MUG]
    # The names of options are sorted in each goal.
    product = replace(mug.product, options=dict(reversed(mug.product.options.items())))
    goals = list(synthetic_goals(replace(mug, product=product), WISH, seed=3))
    limit = goals[0].price_limit
    tail = f", and price lower than {limit:.2f} dollars"
    assert [goal.text for goal in goals] == [
        f"Find me mugs with color: {color}, and size: {size}{tail}"
        for color in ("red", "blue")
        for size in ("small", "large")
    ]
    assert goals[1].options == (("color", "red"), ("size", "large"))
    assert {goal.price_limit for goal in goals} == {limit}
    assert all(goal.attributes == ("leak proof",) for goal in goals)
    bare = replace(mug, product=replace(product, options={}))
    assert [goal.text for goal in synthetic_goals(bare, WISH, seed=3)] == [f"Find me mugs{tail}"]


def test_a_person_s_instruction_loses_its_full_stops():
    mine = Instruction("i want a red mug.", ("leak proof",), ("red",))
    goal = human_goal(items()[MUG], mine, seed=3, number=0)
    assert goal.text == f"i want a red mug{limit_text(goal.price_limit)}"
    assert goal.options == ("red",)


@pytest.mark.parametrize(
    ("cost", "allowed"),
    [
        # Two of 30, 40, 50, 60, of which the larger: never 30.
        (20.0, {40.0, 50.0, 60.0}),
        (19.99, {30.0, 40.0, 50.0}),
        (965.0, {980.0, 990.0}),
        # One is left.
        (980.0, {NO_LIMIT}),
    ],
)
def test_price_limits(cost, allowed):
    assert {price_limit(cost, seed, "B0") for seed in range(60)} == allowed


def test_a_limit_is_uniform_over_pairs():
    drawn = Counter(price_limit(20.0, seed, "B0") for seed in range(3000))
    # Of the six pairs one has 40 as its larger, two 50 and three 60.
    for limit, share in ((40.0, 1 / 6), (50.0, 1 / 3), (60.0, 1 / 2)):
        # Five standard errors of a share of 3,000.
        assert drawn[limit] / 3000 == pytest.approx(share, abs=5 * (share / 3000) ** 0.5)


@given(st.floats(0.01, 900), st.floats(0.0, 90), st.integers(0, 9))
def test_a_price_lies_in_its_range_and_is_the_product_s_own(low, width, seed):
    drawn = price((low, low + width), seed, "B0A")
    assert low <= drawn <= low + width
    assert drawn == price((low, low + width), seed, "B0A")
    assert price((low,), seed, "B0A") == low


def test_the_order_of_goals_is_the_original_s():
    # random.seed(233); random.shuffle(list(range(8))) in CPython 3.
    goals = [Goal(i, str(i), ("a",), (), 10.0) for i in range(8)]
    assert [goal.row for goal in in_order(goals)] == [6, 7, 0, 5, 3, 1, 4, 2]


def test_goals_survive_the_file(tmp_path):
    goals = [
        Goal(3, "one", ("a", "b"), (("size", "s"),), 30.0),
        Goal(4, "two", ("a",), ("red", "large"), 40.0),
        Goal(5, "three", ("a",), (), NO_LIMIT),
    ]
    write_goals(tmp_path / "goals", iter(goals))
    read = GoalList(tmp_path / "goals")
    assert [read.goal(i) for i in range(len(read))] == goals
    (tmp_path / "no").write_bytes(b"nothing")
    for name, message in (("missing", "run the assets stage"), ("no", "not a file of goals")):
        with pytest.raises(UserError, match=message):
            GoalList(tmp_path / name)


def test_products_survive_the_file(tmp_path):
    write_shop(tmp_path)
    catalogue = Catalogue(tmp_path / CATALOGUE)
    assert [catalogue.item(row) for row in range(len(catalogue))] == items()
    assert list(catalogue.items()) == items()
    asins = [catalogue.item(row).product.asin for row in catalogue.by_asin()]
    assert asins == sorted(asins)


@pytest.fixture
def catalogue(tmp_path):
    write_shop(tmp_path)
    return Catalogue(tmp_path / CATALOGUE)


def goal(row, text="x"):
    return Goal(row, text, ("a",), (), 10.0)


def panels_of(goals, catalogue, **config):
    skipped = Counter()
    paths: dict[str, list[str]] = {}
    for split, task in panels(goals, catalogue, PanelsSettings(**config), skipped):
        paths.setdefault(split, []).append(task.path)
    return paths, dict(skipped)


def test_panels_take_goals_in_order(catalogue):
    goals = [goal(row % 13, str(row)) for row in range(9)]
    assert panels_of(goals, catalogue, test=2, validation=3) == (
        {"test": ["0", "1"], "validation": ["2", "3", "4"], "train": ["5", "6", "7", "8"]},
        {},
    )
    paths, _ = panels_of(goals, catalogue, test=2, validation=3, train=1)
    assert paths["train"] == ["5"]


def test_a_goal_that_stands_twice_is_used_once(catalogue):
    # As in the official small set, where goal 1,367 repeats goal 1,316.
    goals = [goal(0), goal(1), goal(1), goal(2), goal(3)]
    assert panels_of(goals, catalogue, test=1, validation=2) == (
        {"test": ["0"], "validation": ["1", "3"], "train": ["4"]},
        {"the same goal is listed twice": 1},
    )


def test_panels_apart_share_no_product(catalogue):
    goals = [goal(row, str(i)) for i, row in enumerate([0, 0, 1, 0, 2, 1, 3, 2])]
    paths, skipped = panels_of(goals, catalogue, test=2, validation=2, apart=True)
    assert paths == {"test": ["0", "1"], "validation": ["2", "4"], "train": ["6"]}
    assert skipped == {"its product is in another panel": 3}
    paths, skipped = panels_of(goals, catalogue, test=2, validation=2)
    assert paths["validation"] == ["2", "3"]
    assert skipped == {}


def test_a_hash_knows_the_goal_and_its_product():
    mug, pot = items()[:2]
    one = goal(0)
    hashes = {
        goal_hash(one, mug),
        goal_hash(one, pot),
        goal_hash(replace(one, text="y"), mug),
        goal_hash(replace(one, price_limit=20.0), mug),
        goal_hash(replace(one, attributes=("b",)), mug),
        goal_hash(replace(one, options=("b",)), mug),
        goal_hash(one, replace(mug, price=19.0)),
    }
    assert len(hashes) == 7
    assert goal_hash(one, mug) == goal_hash(goal(0), mug)
