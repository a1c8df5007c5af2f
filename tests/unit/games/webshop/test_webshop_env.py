"""Sessions: what every action does, what it pays, and what survives it."""

import pickle
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from webshop_fixtures import GOAL_LIST, items, write_shop

from hgrpo.games.webshop import pages
from hgrpo.games.webshop.env import WebshopEnv
from hgrpo.games.webshop.session import Session
from hgrpo.games.webshop.settings import WebshopSettings
from hgrpo.games.webshop.shop import CATALOGUE, Shop, build_index
from hgrpo.games.webshop.tables import write_catalogue

HEAD = f"Instruction: [SEP] {GOAL_LIST[0].text} [SEP] Back to Search [SEP] "


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop") / "assets"
    return folder, write_shop(folder)


@pytest.fixture
def start(shop):
    """An environment at the start of a goal."""
    folder, tasks = shop

    def begin(number=0, **settings):
        env = WebshopEnv(folder, WebshopSettings(name="webshop", **settings))
        env.reset(tasks[number])
        return env

    return begin


def texts(env, *actions):
    return [env.step(action).observation.text for action in actions]


def test_reset_shows_the_search_page(shop):
    folder, tasks = shop
    seen = WebshopEnv(folder).reset(tasks[0])
    assert seen.goal == GOAL_LIST[0].text
    assert seen.text == f"WebShop [SEP] Instruction: [SEP] {seen.goal} [SEP] Search"


def test_a_purchase_from_start_to_end(start):
    env = start()
    steps = [
        env.step(action)
        for action in (
            "search[Steel MUG]",
            "click[B0MUG]",
            "click[red]",
            "click[large]",
            "click[Buy Now]",
        )
    ]
    assert steps[0].observation.text == (
        f"{HEAD}Page 1 (Total results: 1) [SEP] Next > [SEP] B0MUG [SEP] Steel Travel Mug "
        "[SEP] $20.0"
    )
    item = (
        f"{HEAD}< Prev [SEP] color [SEP] red [SEP] blue [SEP] size [SEP] small [SEP] large [SEP] "
        "Steel Travel Mug [SEP] Price: $20.0 [SEP] Rating: N.A. [SEP] Description [SEP] Features "
        "[SEP] Reviews [SEP] Buy Now"
    )
    assert [step.observation.text for step in steps[1:4]] == [item] * 3
    assert steps[4].observation.text.startswith("Thank you for shopping with us!")
    assert [step.env_reward for step in steps] == [0, 0, 0, 0, 1.0]
    assert [step.done for step in steps] == [False] * 4 + [True]
    assert steps[4].success
    assert env.session.bought.option_hits == 2
    assert all(step.info["admissible"] for step in steps)
    # Listed 0.25; open 0.75 of (1 + 1 + 1 + 0) / 4, then with half and all of the options; bought.
    assert [step.progress for step in steps] == pytest.approx(
        [0.25, 0.75 * 0.75 - 0.25, 0.75 * 0.125, 0.75 * 0.125, 0.25]
    )


def test_a_purchase_without_the_options_is_no_success(start):
    env = start()
    texts(env, "search[mug]", "click[b0mug]")
    bought = env.step("click[buy now]")
    # (2 attributes + 0 options + price) / 5.
    assert bought.env_reward == pytest.approx(0.6)
    assert bought.done
    assert not bought.success


def test_paging_and_going_back(start):
    env = start()
    first, second, third = texts(env, "search[candle]", "click[next >]", "click[next >]")
    assert "Page 1 (Total results: 11) [SEP] Next > [SEP] B0CAN0 [SEP]" in first
    # Equal scores go by asin, and "B0CAN10" comes before "B0CAN2": the last is number 9.
    assert "Page 2 (Total results: 11) [SEP] < Prev [SEP] Next > [SEP] B0CAN9 [SEP]" in second
    assert third.endswith("Page 3 (Total results: 11) [SEP] < Prev [SEP] Next >")
    assert texts(env, "click[< prev]", "click[< prev]") == [second, first]
    opened, back = texts(env, "click[b0can3]", "click[< prev]")
    assert "Candle 3" in opened
    assert back == first
    (search,) = texts(env, "click[back to search]")
    assert search.startswith("WebShop [SEP]")


def test_a_search_lists_fifty_products_on_five_pages(tmp_path):
    candle = items()[2]
    stock = [
        replace(candle, row=row, product=replace(candle.product, asin=f"B0{row:02}"))
        for row in range(60)
    ]
    write_catalogue(tmp_path / CATALOGUE, stock)
    build_index(tmp_path)
    session = Session(Shop(tmp_path), GOAL_LIST[0])
    session.act("search[candle]")
    listed = []
    for number in range(1, 7):
        assert f"Page {number} (Total results: 50)" in pages.text(session.page)
        listed.append(len(session.listed))
        session.act("click[next >]")
    assert listed == [10, 10, 10, 10, 10, 0]


def test_tabs_keep_the_choices_and_leaving_loses_them(start):
    env = start()
    texts(env, "search[mug]", "click[b0mug]", "click[red]")
    (description, _) = texts(env, "click[description]", "click[< prev]")
    assert description == f"{HEAD}< Prev [SEP] Keeps tea warm."
    assert env.session.chosen == {"color": "red"}
    texts(env, "click[blue]")
    assert env.session.chosen == {"color": "blue"}
    texts(env, "click[< prev]", "click[b0mug]")
    assert env.session.chosen == {}


def test_searching_works_on_every_page(start):
    env = start()
    texts(env, "search[mug]", "click[b0mug]", "click[red]", "search[pot]")
    assert env.session.chosen == {}
    assert env.admissible_commands() == [
        "click[back to search]",
        "click[next >]",
        "click[b0pot]",
    ]


@pytest.mark.parametrize(
    "action",
    [
        "",
        "click[search]",
        "click[b0pot]",
        "search[]",
        "Click[back to search]",
        " search[mug]",
        "search[a\nb]",
    ],
)
def test_what_is_no_action_changes_nothing(start, action):
    env = start()
    before = env.session.page
    step = env.step(action)
    assert not step.info["admissible"]
    assert (step.env_reward, step.progress, step.done) == (0.0, 0.0, False)
    assert env.session.page == before


@pytest.mark.parametrize(
    ("action", "results"),
    [
        ("search[ ]", 0),
        ("search[the of]", 0),
        ("search[" + "mug " * 10_000 + "]", 1),
        ("search[\x01\x02 pot \x7f]", 1),
        ("search[<r>]", 0),
        ("search[\u4e2d\u6587]", 0),
        # The last bracket ends the words, as in the original.
        ("search[mug] and more]", 1),
        ("search[mug] and more", 1),
    ],
)
def test_odd_searches(start, action, results):
    env = start()
    step = env.step(action)
    assert step.info["admissible"]
    assert f"(Total results: {results})" in step.observation.text


def test_an_instruction_can_be_shown_once(start):
    env = start(repeat_instruction=False)
    assert texts(env, "search[pot]") == [
        "Back to Search [SEP] Page 1 (Total results: 1) [SEP] Next > [SEP] B0POT [SEP] "
        "Clay Tea Pot [SEP] $30.0 to $50.0"
    ]


def test_rich_text(start):
    env = start(observation="text_rich", show_attributes=True)
    _, item = texts(env, "search[mug]", "click[b0mug]")
    assert "[button] Attributes [button_]" in item
    (chosen,) = texts(env, "click[red]")
    assert chosen.startswith("You have clicked red.\n")
    assert texts(env, "click[< prev]")[0].count("[clicked button] B0MUG [clicked button_]") == 1


FIRST = "Page 1 (Total results: 1) [SEP] Next > [SEP] B0MUG [SEP] Steel Travel Mug [SEP] $20.0"
NOWHERE = "Page 0 (Total results: 1) [SEP] Next >"


@pytest.mark.parametrize(
    ("search", "clicks", "page_text"),
    [
        ("mug search_results", ["red", "features"], NOWHERE),
        ("mug item_page", ["red", "features"], FIRST),
        # "search_results" is looked for first.
        ("item_page mug search_results", ["features"], NOWHERE),
        # These names come after that of the page itself.
        ("mug item_sub_page done", [], FIRST),
    ],
)
def test_a_page_s_name_in_the_search_misleads_prev_as_in_the_original(
    start, search, clicks, page_text
):
    env = start()
    *_, page = texts(
        env,
        f"search[{search}]",
        "click[b0mug]",
        *(f"click[{text}]" for text in clicks),
        "click[< prev]",
    )
    assert page == HEAD + page_text
    assert env.session.chosen == {}
    assert env.admissible_commands()[:2] == ["click[back to search]", "click[next >]"]
    if page_text == NOWHERE:
        assert texts(env, "click[next >]") == [HEAD + FIRST]


def test_human_goals_and_goals_without_options(start):
    env = start(2)
    texts(env, "search[mug]", "click[b0mug]", "click[blue]")
    assert env.step("click[buy now]").env_reward == 1.0
    env = start(1)
    texts(env, "search[pot]", "click[b0pot]")
    assert env.step("click[buy now]").env_reward == 1.0


def test_stepping_on_after_the_end(shop, start):
    folder, _ = shop
    with pytest.raises(RuntimeError, match="before `reset`"):
        WebshopEnv(folder).step("search[mug]")
    env = start()
    texts(env, "search[mug]", "click[b0mug]", "click[buy now]")
    with pytest.raises(RuntimeError, match="after the purchase"):
        env.step("search[mug]")


def test_situations_compare_pages_and_choices(start):
    def there(*actions, number=0):
        env = start(number)
        texts(env, *actions)
        return env.situation()

    to_mug = ("search[mug]", "click[b0mug]")
    assert there(*to_mug) == there("search[pot]", "search[mug]", "nonsense", "click[b0mug]")
    # The same mug under another instruction: the instruction is no part of the situation.
    assert there(*to_mug) == there(*to_mug, number=2)
    assert there(*to_mug) != there(*to_mug, "click[red]")
    assert there(*to_mug, "click[red]", "click[large]") == there(
        *to_mug, "click[large]", "click[red]"
    )
    # What was chosen is no text of the page, and changes no click.
    assert there(*to_mug)[1] == there(*to_mug, "click[red]")[1]
    assert there("search[mug]")[1] != there("search[pot]")[1]


ACTIONS = st.lists(
    st.sampled_from(
        [
            "search[mug]",
            "search[candle pot]",
            "search[zzz]",
            "click[b0mug]",
            "click[b0pot]",
            "click[b0can1]",
            "click[next >]",
            "click[< prev]",
            "click[back to search]",
            "click[description]",
            "click[features]",
            "click[reviews]",
            "click[red]",
            "click[large]",
            "click[buy now]",
            "nonsense",
        ]
    ),
    max_size=25,
)


@settings(max_examples=40)
@given(ACTIONS, st.integers(0, 2))
def test_any_walk_keeps_the_promises(shop, actions, number):
    """Admissible means listed or a search; progress sums to the potential; pickles play on."""
    folder, tasks = shop
    env = WebshopEnv(folder)
    env.reset(tasks[number])
    twin = None
    total = 0.0
    for place, action in enumerate(actions):
        if place == len(actions) // 2:
            twin = pickle.loads(pickle.dumps(env))
        listed = action in env.admissible_commands() or action.startswith("search[")
        step = env.step(action)
        total += step.progress
        assert step.info["admissible"] == listed
        assert step.done == (action == "click[buy now]" and listed)
        assert -1e-9 <= total <= 1 + 1e-9
        if twin is not None:
            assert twin.step(action) == step
            assert twin.situation() == env.situation()
        if step.done:
            assert step.success == (step.env_reward == 1.0)
            return
        assert step.env_reward == 0.0


def test_sessions_do_not_touch_each_other(start):
    one, two = start(), start()
    texts(one, "search[mug]", "click[b0mug]", "click[red]")
    texts(two, "search[mug]", "click[b0mug]")
    assert two.session.chosen == {}
    one.step("click[buy now]")
    assert two.step("click[blue]").info["admissible"]
