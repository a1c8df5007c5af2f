"""Odd and broken input: one clear error or what the original does, and other sessions play on."""

import json
import pickle
import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from webshop_fixtures import items, write_shop

from hgrpo.errors import UserError
from hgrpo.games.base import Task
from hgrpo.games.webshop import official, session
from hgrpo.games.webshop.env import GOALS, WebshopEnv
from hgrpo.games.webshop.goals import synthetic_goals
from hgrpo.games.webshop.records import Instruction, Item
from hgrpo.games.webshop.settings import HabitsSettings, WebshopSettings
from hgrpo.games.webshop.shop import CATALOGUE, build_index
from hgrpo.games.webshop.shopper import Reader, oracle
from hgrpo.games.webshop.tables import GoalList, goal_hash, write_catalogue, write_goals

TURN_CAP = 12


def record(asin: str = "B0MUG", **changes: object) -> dict:
    """A product of an official file."""
    return {
        "asin": asin,
        "name": "Stone Mug",
        "full_description": "Holds tea.",
        "small_description": ["hand made"],
        "product_category": "Kitchen \u203a Cups",
        "category": "kitchen",
        "query": "mugs",
        "pricing": "$5.00",
        "customization_options": {"color": [{"value": "red"}]},
    } | changes


def offering(*values: str, **changes: object) -> dict:
    """A product with the option "kind"."""
    return record(customization_options={"kind": [{"value": v} for v in values]}, **changes)


def open_shop(folder: Path, records: list[dict]) -> list[Task]:
    """A shop of these products; its tasks ask for every combination of their options."""
    folder.mkdir()
    path = folder / "items.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    stock = [
        Item(row, product, product.prices[0], tuple(product.title.lower().split()))
        for row, product in enumerate(official.products(path, {}, None, Counter()))
    ]
    write_catalogue(folder / CATALOGUE, stock)
    build_index(folder)
    goals = [
        goal
        for item in stock
        for goal in synthetic_goals(item, Instruction("Find me a mug", ("tea",), None), 0)
    ]
    write_goals(folder / GOALS, goals)
    return [
        Task(f"goal-{i}", str(i), goal_hash(goal, stock[goal.row]), "kitchen")
        for i, goal in enumerate(goals)
    ]


def start(tmp_path: Path, *records: dict, **settings: bool) -> WebshopEnv:
    """An environment at the first goal of a shop of these products."""
    tasks = open_shop(tmp_path / "shop", list(records))
    env = WebshopEnv(tmp_path / "shop", WebshopSettings(name="webshop", **settings))
    env.reset(tasks[0])
    return env


ODD = {
    "values with brackets": [offering("red [2 pack]", "a]b", "x[y", "[", "]")],
    "values over two lines": [offering("two\nlines", "\r", "a\tb")],
    "empty values": [offering("", "   ", "/")],
    "values that are buttons": [
        offering("Buy Now", "Description", "< Prev", "Next >", "Back to Search", "Search", "B0MUG")
    ],
    "a value under two names": [
        record(customization_options={"a": [{"value": "x"}], "b": [{"value": "x"}]})
    ],
    "options without values": [record(), record("B0POT", customization_options={"a": []})],
    "asins that are buttons": [
        *(record(asin) for asin in ("buy now", "features", "reviews", "attributes", "search")),
        *(record(asin) for asin in ("Next >", "< prev", "b[0]", "a\nb", " ", "\u0000", "\u00e9")),
    ],
    "asins apart in case": [record("b0mug"), record("B0MUG")],
    "empty texts": [
        record(
            name="", full_description="", small_description=[], query="", product_category="\u203a"
        )
    ],
    "markup": [
        offering("<input value='a'>", '"', "&amp;", name="<b>Mug</b> <script>x</script> &lt;")
    ],
    "control characters": [
        offering("\x00", "\x1b[31m", name="Mug\x00 \x07\nand\tmore\u2028", query="\x00")
    ],
    "half a surrogate pair": [record(name="Mug \ud800 x")],
    "other scripts": [
        offering("\u0130", "\u03a3\u03a3", "\ud55c\uad6d\uc5b4", name="\u6f22\u5b57 \u0e44\u0e17")
    ],
    "a long description": [record(full_description="tea " * 50_000)],
}


@pytest.mark.parametrize("records", ODD.values(), ids=ODD)
def test_odd_products_are_shopped_for(tmp_path, records):
    """All listed commands are admissible, and no player meets an error."""
    tasks = open_shop(tmp_path / "shop", records)
    settings = {"observation": "text_rich", "show_attributes": True}
    env = WebshopEnv(tmp_path / "shop", WebshopSettings(name="webshop", **settings))
    for number, task in enumerate(tasks):
        for player in ("oracle", "reader", "walker"):
            env.reset(task)
            rng = np.random.default_rng(number)
            play = {
                "oracle": lambda: oracle(env.session),
                "reader": Reader(env.session, HabitsSettings(look=1), rng).act,
                "walker": lambda rng=rng: rng.choice(env.admissible_commands() or ["search[mug]"]),
            }[player]
            for _ in range(TURN_CAP):
                listed = env.admissible_commands()
                action = play()
                if action is None:
                    break
                step = env.step(action)
                if player == "walker" or action in listed:
                    assert step.info["admissible"], action
                env.situation()
                if step.done:
                    break


@pytest.mark.parametrize(
    ("value", "admissible", "text"),
    [
        # The original looks first at the text, and only then at what was clicked.
        ("Buy Now", True, "Thank you for shopping with us!"),
        ("Description", True, "Holds tea."),
        ("Attributes", True, "DUMMY_ATTR"),
        ("Back to Search", True, "WebShop [SEP]"),
        ("< Prev", True, "Page 1 (Total results: 1)"),
        # These three are options of the product like any other.
        ("Next >", True, "Price: $5.0"),
        ("B0MUG", True, "Price: $5.0"),
        ("a]b", True, "Price: $5.0"),
        # No click can name these: the search bar is no button, and a bracket opens the argument.
        ("Search", False, "Price: $5.0"),
        ("red [2 pack]", False, "Price: $5.0"),
        ("two\nlines", False, "Price: $5.0"),
        ("", False, "Price: $5.0"),
    ],
)
def test_a_value_that_reads_like_something_else(tmp_path, value, admissible, text):
    env = start(tmp_path, offering(value))
    env.step("search[mug]")
    env.step("click[b0mug]")
    click = f"click[{value.lower()}]"
    assert (click in env.admissible_commands()) == admissible
    step = env.step(click)
    assert step.info["admissible"] == admissible
    assert text in step.observation.text
    chosen = admissible and text == "Price: $5.0"
    assert env.session.chosen == ({"kind": value.lower()} if chosen else {})
    assert step.done == (value == "Buy Now")


@pytest.mark.parametrize("asin", ["buy now", "Reviews"])
def test_a_product_opens_whatever_its_asin_reads_like(tmp_path, asin):
    env = start(tmp_path, record(asin), record())
    env.step("search[mug]")
    step = env.step(f"click[{asin.lower()}]")
    assert not step.done
    assert "Price: $5.0" in step.observation.text
    assert env.session.item.product.asin == asin


def test_an_action_that_is_no_text_changes_nothing(tmp_path):
    env = start(tmp_path, record())
    with pytest.raises(TypeError, match="step: an action must be a string, not "):
        env.step(None)
    assert pickle.loads(pickle.dumps(env)).step("search[mug]") == env.step("search[mug]")


@given(st.text(st.sampled_from("ab[]\n\u2028 "), max_size=12))
def test_actions_read_as_by_the_originals_pattern(action):
    match = re.match(r"(.+)\[(.+)\]", action)
    assert session._parse(action) == (match and match.groups())


def test_brackets_are_read_in_linear_time():
    """The original's pattern would take hours for this text."""
    assert session._parse("[" * 5_000_000) is None
    assert session._parse("[" * 5_000_000 + "a]") == ("[" * 4_999_999, "a")


# Files of data.


def test_half_a_character_is_a_question_mark(tmp_path):
    path = tmp_path / "items.json"
    path.write_text(
        json.dumps([record(name="\udc00 mug \ud800"), record("B0POT")]), encoding="utf-8"
    )
    products = list(official.products(path, {}, None, Counter()))
    assert [product.title for product in products] == ["? mug ?", record()["name"]]


# Folders of assets.


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop") / "assets"
    return folder, write_shop(folder)


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "half a catalogue": (lambda folder: halve(folder / CATALOGUE), "catalogue.arrow: not a"),
    "half the goals": (lambda folder: halve(folder / GOALS), "goals.arrow: not a"),
    "half a table": (lambda folder: halve(folder / "index/rows.npy"), "rows.npy: not a"),
    "no goals": (lambda folder: (folder / GOALS).unlink(), "goals.arrow"),
    "no index": (
        lambda folder: shutil.rmtree(folder / "index"),
        "index: the folder is not a search index",
    ),
    "a table of another kind": (
        lambda folder: np.save(folder / "index/rows.npy", np.zeros((13, 2))),
        r"not a table of rows \(rows.npy contains float64 \[13, 2\]",
    ),
    "the goals for the catalogue": (
        lambda folder: shutil.copy(folder / GOALS, folder / CATALOGUE),
        "catalogue has a different schema",
    ),
    "a catalogue with another price": (
        lambda folder: write_catalogue(
            folder / CATALOGUE, [replace(items()[0], price=19.0), *items()[1:]]
        ),
        "goal 0 has content hash .* run the assets stage again",
    ),
    "goals of a larger shop": (
        lambda folder: write_goals(
            folder / GOALS, [replace(GoalList(folder / GOALS).goal(0), row=4000)]
        ),
        "the catalogue has 13 rows, but no row 4000; run the assets stage again",
    ),
}


def halve(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_folder_is_named(whole, tmp_path, damage, message):
    folder, tasks = whole
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    damage(copy)
    with pytest.raises(UserError, match=message):
        WebshopEnv(copy).reset(tasks[0])


def test_a_reset_that_fails_leaves_the_session_as_it_was(whole):
    folder, tasks = whole
    env = WebshopEnv(folder)
    env.reset(tasks[0])
    env.step("search[mug]")
    with pytest.raises(UserError, match="goals.arrow: the file of goals has 3 rows"):
        env.reset(replace(tasks[0], path="1000"))
    assert env.step("click[b0mug]").info["admissible"]
