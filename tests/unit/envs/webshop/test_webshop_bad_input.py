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
from webshop_replay import Recorded, compare, read_sessions

from hgrpo.envs.base import Task
from hgrpo.envs.webshop import assets, official, session
from hgrpo.envs.webshop.env import GOALS, WebshopEnv
from hgrpo.envs.webshop.goals import synthetic_goals
from hgrpo.envs.webshop.records import Instruction, Item
from hgrpo.envs.webshop.settings import HabitsSettings, WebshopSettings
from hgrpo.envs.webshop.shop import CATALOGUE, Shop, build_index
from hgrpo.envs.webshop.shopper import Reader, oracle
from hgrpo.envs.webshop.tables import GoalList, goal_hash, write_catalogue, write_goals
from hgrpo.errors import UserError

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
    env = WebshopEnv(tmp_path / "shop", **settings)
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


@pytest.mark.parametrize(
    "settings", [{}, {"rich": True, "show_attributes": True}], ids=["", "rich"]
)
@pytest.mark.parametrize("records", ODD.values(), ids=ODD)
def test_odd_products_are_shopped_for(tmp_path, records, settings):
    """Whatever is listed is accepted, and no player walks into an error."""
    tasks = open_shop(tmp_path / "shop", records)
    env = WebshopEnv(tmp_path / "shop", **settings)
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


def test_every_command_that_is_listed_is_accepted(tmp_path):
    records = [record for records in ODD.values() for record in records]
    records = [
        record | {"asin": f"{i:03}{record['asin']}"[:10]} for i, record in enumerate(records)
    ]
    for task in open_shop(tmp_path / "shop", records):
        env = WebshopEnv(tmp_path / "shop", show_attributes=True)
        env.reset(task)
        title = env.session.shop.item(env.session.goal.row).product.asin.lower()
        for before in (["search[mug]"], ["search[mug]", f"click[{title}]"]):
            env.reset(task)
            for action in before:
                env.step(action)
            for command in env.admissible_commands():
                env.reset(task)
                for action in before:
                    env.step(action)
                assert env.step(command).info["admissible"], command


@pytest.mark.parametrize(
    ("value", "admissible", "shown"),
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
def test_a_value_that_reads_like_something_else(tmp_path, value, admissible, shown):
    env = start(tmp_path, offering(value))
    env.step("search[mug]")
    env.step("click[b0mug]")
    click = f"click[{value.lower()}]"
    assert (click in env.admissible_commands()) == admissible
    step = env.step(click)
    assert step.info["admissible"] == admissible
    assert shown in step.observation.text
    chosen = admissible and shown == "Price: $5.0"
    assert env.session.chosen == ({"kind": value.lower()} if chosen else {})
    assert step.done == (value == "Buy Now")


@pytest.mark.parametrize("value", ["red [2 pack]", "search", ""])
def test_players_do_without_a_value_that_cannot_be_chosen(tmp_path, value):
    env = start(tmp_path, offering(value))
    actions = ["search[stone mug]", "click[B0MUG]", "click[Buy Now]"]
    for action in actions:
        assert oracle(env.session) == action
        step = env.step(action)
    # The attribute and the price, of these two and the option.
    assert step.env_reward == pytest.approx(2 / 3)


@pytest.mark.parametrize("asin", ["buy now", "features", "Reviews", "attributes"])
def test_a_product_opens_whatever_its_asin_reads_like(tmp_path, asin):
    env = start(tmp_path, record(asin), record())
    env.step("search[mug]")
    step = env.step(f"click[{asin.lower()}]")
    assert not step.done
    assert "Price: $5.0" in step.observation.text
    assert env.session.item.product.asin == asin


def test_markup_is_text(tmp_path):
    env = start(tmp_path, record(name="<b>Mug</b> &amp; <script>x</script>"))
    (step, _) = env.step("search[mug]"), env.step("click[b0mug]")
    assert "[SEP] <b>Mug</b> &amp; <script>x</script> [SEP] $5.0" in step.observation.text


@pytest.mark.parametrize(
    "action",
    [
        "search[a\nb]",
        "click[b0mug\x00]",
        "click[b0mug\n]",
        "\ud800",
        "[[]]",
        "click[[]",
        "[" * 9999,
    ],
)
def test_an_action_of_odd_characters_changes_nothing(tmp_path, action):
    env = start(tmp_path, record())
    env.step("search[mug]")
    before = env.session.page
    assert not env.step(action).info["admissible"]
    assert env.session.page == before


@pytest.mark.parametrize("action", [None, b"search[mug]", 3, ["search[mug]"]])
def test_an_action_that_is_no_text_changes_nothing(tmp_path, action):
    env = start(tmp_path, record())
    with pytest.raises(TypeError, match="step: an action is text, not "):
        env.step(action)
    assert pickle.loads(pickle.dumps(env)).step("search[mug]") == env.step("search[mug]")


@given(st.text(st.sampled_from("ab[]\n\u2028 "), max_size=12))
def test_actions_read_as_by_the_originals_pattern(action):
    found = re.match(r"(.+)\[(.+)\]", action)
    assert session._parse(action) == (found and found.groups())


def test_brackets_are_read_in_linear_time():
    """The original's pattern would take hours for this text."""
    assert session._parse("[" * 5_000_000) is None
    assert session._parse("[" * 5_000_000 + "a]") == ("[" * 4_999_999, "a")


@pytest.mark.parametrize(
    "query", ["\ud800 mug", "mug \x00\x1b", "a" * 10_000 + " mug", "[mug", "]mug"]
)
def test_a_query_of_odd_characters_is_searched_for(tmp_path, query):
    env = start(tmp_path, record())
    step = env.step(f"search[{query}]")
    # A bracket opens the argument anew: "search[" is no verb.
    assert step.info["admissible"] == ("[" not in query)
    assert ("Total results: 1" in step.observation.text) == step.info["admissible"]


# Files of data.


@pytest.mark.parametrize(
    ("pricing", "prices"),
    [
        ("$1,000.00 to $2,000.00", (1000.0, 2000.0)),
        ("$2,000 - $1,000", (2000.0, 1000.0)),
        ("$0.00", (0.0,)),
        ("$\u0663", (3.0,)),
        ("$NaN", None),
        ("$Infinity", None),
        ("$", None),
        ("1,000.00", None),
        (-5, None),
    ],
)
def test_a_price_is_a_number_or_named(tmp_path, pricing, prices):
    path = tmp_path / "items.json"
    path.write_text(json.dumps([record(pricing=pricing)]), encoding="utf-8")
    counts: Counter[str] = Counter()
    products = list(official.products(path, {}, None, counts))
    assert [product.prices for product in products] == ([prices] if prices else [])
    named = [why for why in counts if "items.json: record 1 (B0MUG): pricing: " in why]
    assert len(named) == (prices is None)


READERS: dict[str, Callable[[Path], object]] = {
    "products": lambda path: list(official.products(path, {}, None, Counter())),
    "attributes": lambda path: official.attributes(path, Counter()),
    "people": lambda path: official.human_instructions(path, Counter()),
}


@pytest.mark.parametrize("constant", ["nan", "None", "0x10", "'a'"])
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_what_json_does_not_know_is_named(tmp_path, read, constant):
    path = tmp_path / "file.json"
    inside = f'{{"asin": "A", "attributes": {constant}}}'
    path.write_text(
        f"[{inside}]" if read is READERS["products"] else f'{{"A": [{inside}]}}', encoding="utf-8"
    )
    with pytest.raises(UserError, match=r"file\.json: the JSON is broken or cut off after entry 0"):
        read(path)


@pytest.mark.parametrize("depth", [1500, 5000, 200_000])
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_deep_nesting_is_one_line(tmp_path, read, depth):
    path = tmp_path / "file.json"
    deep = "[" * depth + "]" * depth
    path.write_text(
        f"[{deep}]" if read is READERS["products"] else f'{{"A": {deep}}}', encoding="utf-8"
    )
    with pytest.raises(UserError, match=r"file\.json: .*nested very deeply"):
        read(path)


def test_half_a_character_is_a_question_mark(tmp_path):
    path = tmp_path / "items.json"
    path.write_text(
        json.dumps([record(name="\udc00 mug \ud800"), record("B0POT")]), encoding="utf-8"
    )
    products = list(official.products(path, {}, None, Counter()))
    assert [product.title for product in products] == ["? mug ?", record()["name"]]


def test_brackets_in_texts_are_not_nesting(tmp_path):
    path = tmp_path / "items.json"
    odd = [record(f"B{i}", full_description="[" * 100) for i in range(50)]
    path.write_text(json.dumps(odd), encoding="utf-8")
    assert len(list(official.products(path, {}, None, Counter()))) == 50


INSTRUCTION = {"instruction": "Find me mugs", "instruction_attributes": ["hand made"]}
HUMAN = {"instruction": "a mug", "instruction_attributes": ["hand made"], "instruction_options": []}


def make(folder: Path, records: list, entries: dict, people: dict) -> tuple[list, Counter]:
    """Tasks of official files, and what was left out."""
    for name, content in (
        ("items_shuffle", records),
        ("items_ins_v2", entries),
        ("items_human_ins", people),
    ):
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    config = WebshopSettings(
        name="webshop",
        goals="both",
        products={"folder": str(folder)},
        panels={"test": 1, "validation": 1},
    )
    skipped: Counter[str] = Counter()
    out = folder / "assets"
    out.mkdir()
    return list(assets.make(config, 0, out, skipped)), skipped


@pytest.mark.extra("webshop")
def test_instructions_for_what_is_not_sold_are_counted(tmp_path):
    stock = [record(f"B0MUG{i}") for i in range(3)]
    entries = dict.fromkeys(("B0MUG0", "B0MUG1", "B0MUG2", "GONE1"), INSTRUCTION) | {"GONE2": {}}
    tasks, skipped = make(tmp_path, stock, entries, {"B0MUG0": [HUMAN], "GONE3": [HUMAN, HUMAN]})
    assert len(tasks) == 4
    assert skipped["instruction left out: its product is not in the shop"] == 3


@pytest.mark.extra("webshop")
@pytest.mark.parametrize(("records", "entries"), [([], {}), ([record()], {"GONE": INSTRUCTION})])
def test_a_shop_without_goals_is_named(tmp_path, records, entries):
    with pytest.raises(UserError, match=r"panels\.test: 0 goals are too few"):
        make(tmp_path, records, entries, {})


# Folders of assets.


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop") / "assets"
    return folder, write_shop(folder)


@pytest.fixture
def copy(whole, tmp_path):
    folder, tasks = whole
    return Path(shutil.copytree(folder, tmp_path / "copy")), tasks


@pytest.mark.parametrize("kept", [0, 7, 0.5, -1], ids=["empty", "head", "half", "all but a byte"])
@pytest.mark.parametrize("name", [CATALOGUE, GOALS, "index/rows.npy"])
def test_a_file_cut_short_is_named(copy, name, kept):
    folder, tasks = copy
    path = folder / name
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2 if kept == 0.5 else kept])
    with pytest.raises(UserError, match=rf"{name}: (not a|no table)"):
        WebshopEnv(folder).reset(tasks[0])


@pytest.mark.parametrize("name", [CATALOGUE, GOALS, "index/rows.npy", "index"])
@pytest.mark.parametrize("folder_instead", [False, True])
def test_a_file_that_is_gone_or_a_folder_is_named(copy, name, folder_instead):
    folder, tasks = copy
    path = folder / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    if folder_instead:
        path.mkdir()
    with pytest.raises(UserError, match=name):
        WebshopEnv(folder).reset(tasks[0])


def rows(stock: list[Item]) -> list[Item]:
    return [replace(item, row=row) for row, item in enumerate(stock)]


def save_rows(folder: Path, table: np.ndarray) -> None:
    np.save(folder / "index/rows.npy", table)


SWAPS: dict[str, tuple[Callable[[Path], object], str]] = {
    "the goals for the catalogue": (
        lambda folder: shutil.copy(folder / GOALS, folder / CATALOGUE),
        "not a catalogue of this version",
    ),
    "the catalogue for the goals": (
        lambda folder: shutil.copy(folder / CATALOGUE, folder / GOALS),
        "not a file of goals of this version",
    ),
    "a smaller catalogue": (
        lambda folder: write_catalogue(folder / CATALOGUE, items()[:5]),
        "holds 5 products, index 13 and index/rows.npy 13; run the assets stage again",
    ),
    "a catalogue in another order": (
        lambda folder: write_catalogue(folder / CATALOGUE, rows([items()[0], *items()[:0:-1]])),
        "index was made of another catalogue.arrow; run the assets stage again",
    ),
    "a catalogue with another price": (
        lambda folder: write_catalogue(
            folder / CATALOGUE, [replace(items()[0], price=19.0), *items()[1:]]
        ),
        "goal 0 has content hash .* run the assets stage again",
    ),
    "another shop's goals": (
        lambda folder: write_goals(
            folder / GOALS, [GoalList(folder / GOALS).goal(1), GoalList(folder / GOALS).goal(0)]
        ),
        "goal 0 has content hash .* run the assets stage again",
    ),
    "goals of a larger shop": (
        lambda folder: write_goals(
            folder / GOALS, [replace(GoalList(folder / GOALS).goal(0), row=4000)]
        ),
        "the catalogue holds 13 rows, so it has no row 4000; run the assets stage again",
    ),
    "a table into a larger catalogue": (
        lambda folder: save_rows(folder, np.arange(100, 113, dtype=np.int32)),
        "the catalogue holds 13 rows, so it has no row 100",
    ),
    "a table of another kind": (
        lambda folder: save_rows(folder, np.zeros((13, 2))),
        r"not a table of rows \(rows.npy holds float64 \[13, 2\]",
    ),
}


@pytest.mark.parametrize(("swap", "message"), SWAPS.values(), ids=SWAPS)
def test_a_folder_half_copied_is_named(copy, swap, message):
    folder, tasks = copy
    swap(folder)
    with pytest.raises(UserError, match=message):
        WebshopEnv(folder).reset(tasks[0])


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (str(10**9), "goals.arrow: the file of goals holds 3 rows, so it has no row 1000000000"),
        ("9" * 5000, "9' is not the number of a goal"),
        ("\u00b2", "is not the number of a goal"),
        ("", "'' is not the number of a goal"),
    ],
    ids=ascii,
)
def test_a_task_that_is_no_goal_leaves_other_sessions_alone(whole, path, message):
    folder, tasks = whole
    playing, other = WebshopEnv(folder), WebshopEnv(folder)
    playing.reset(tasks[0])
    playing.step("search[mug]")
    with pytest.raises(UserError, match=message):
        other.reset(replace(tasks[0], path=path))
    assert playing.step("click[b0mug]").info["admissible"]
    with pytest.raises(UserError, match=message):
        playing.reset(replace(tasks[0], path=path))
    # A reset that fails leaves the session as it was.
    assert playing.step("click[red]").info["admissible"]


# Recorded sessions.


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "log: cannot be read"),
        (b"[" * 100_000, "log:1: Invalid JSON"),
        (
            b'{"goal": "x", "actions": [], "observations": [], "reward": 0}',
            "log:1: goal: Input should be",
        ),
    ],
)
def test_a_log_that_is_none_is_named(tmp_path, content, message):
    (tmp_path / "log").write_bytes(content)
    with pytest.raises(UserError, match=message):
        list(read_sessions(tmp_path / "log"))
    with pytest.raises(UserError, match=f"{tmp_path}: cannot be read"):
        list(read_sessions(tmp_path))


def test_a_reward_that_is_no_number_is_a_difference(whole):
    folder, _ = whole
    recorded = Recorded(1, 0, [], [], float("nan"))
    found = compare(recorded, Shop(folder), GoalList(folder / GOALS), rich=False)
    assert found == "reward: recorded nan, here 0.0 (None)"
