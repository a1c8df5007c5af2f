"""The scripted searcher: sees only text, wins given time, and obeys its knobs."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stage_settings import run_stage

from hgrpo.errors import UserError
from hgrpo.games import streams
from hgrpo.games.alfworld.expert import Searcher, informed
from hgrpo.games.alfworld.generator import game, generate
from hgrpo.games.alfworld.goals import Goal
from hgrpo.games.alfworld.house import House, Household
from hgrpo.games.alfworld.native import CompiledGame, NativeGame
from hgrpo.games.alfworld.settings import AlfworldSettings, GenerateSettings, SearcherSettings

DIRECT = SearcherSettings(random_pick=0, dawdle=0, revisit=0, close_after_open=0)


@pytest.fixture(scope="module")
def games() -> list:
    config = GenerateSettings(receptacles=(7, 9))
    sizes = {"train": 60, "validation": 1, "test": 1}
    made = list(generate(config, sizes, "move", 0))[:60]
    return [
        (CompiledGame(files.game), files.trajectory["turk_annotations"]["anns"][0]["task_desc"])
        for _, files in made
    ]


def follow(compiled, goal, config, cap=100, seed=0, favourites=None, language="move"):
    """(commands, observations, won); observations start with the opening text."""
    play = NativeGame(compiled)
    texts, commands = [play.reset()], []
    rng = streams.generator("test", seed)
    searcher = Searcher(texts[0], goal, config, rng, language, favourites)
    answer = None
    while len(commands) < cap and not play.won:
        commands.append(searcher.act(answer))
        answer = play.step(commands[-1])
        texts.append(answer)
    return commands, texts, play.won


def test_it_wins_every_game_given_time_and_never_fumbles(games):
    for seed, (compiled, goal) in enumerate(games):
        _, texts, won = follow(compiled, goal, SearcherSettings(), seed=seed)
        assert won, texts
        assert "Nothing happens." not in texts


PLACES = ("Cabinet", "Cabinet", "CounterTop", "Drawer", "Fridge", "Shelf")
HIDING = [0, 1, 2, 4, 5]
GOAL = "cool some mug and put it in countertop"
KNOBS = st.floats(0, 1)


def hiding(place: int) -> CompiledGame:
    house = House("kitchen", PLACES, (("Mug", place), ("Spoon", 3)))
    mission = Goal("pick_cool_then_place_in_recep", "Mug", "CounterTop", "")
    return CompiledGame(game(house, mission, GOAL, "move"))


@settings(max_examples=30)
@given(
    st.sampled_from(HIDING),
    st.sampled_from(HIDING),
    st.integers(0, 10**6),
    st.sampled_from(["listing", "random"]),
    KNOBS,
    KNOBS,
    KNOBS,
)
def test_two_houses_that_look_the_same_so_far_get_the_same_commands(
    one, other, seed, order, pick, dawdle, revisit
):
    config = SearcherSettings(order=order, random_pick=pick, dawdle=dawdle, revisit=revisit)
    first, second = (follow(hiding(place), GOAL, config, 40, seed) for place in (one, other))
    for turn in range(min(len(first[0]), len(second[0]))):
        if first[1][: turn + 1] != second[1][: turn + 1]:
            assert one != other
            break
        assert first[0][turn] == second[0][turn]


def test_a_direct_search_follows_the_listing():
    commands, _, won = follow(hiding(4), GOAL, DIRECT)
    assert commands == [
        "go to cabinet 2",
        "open cabinet 2",
        "go to cabinet 1",
        "open cabinet 1",
        "go to countertop 1",
        "go to drawer 1",
        "open drawer 1",
        "go to fridge 1",
        "open fridge 1",
        "take mug 1 from fridge 1",
        "cool mug 1 with fridge 1",
        "go to countertop 1",
        "move mug 1 to countertop 1",
    ]
    assert won


def test_closing_is_a_knob():
    tidy = DIRECT.model_copy(update={"close_after_open": 1.0})
    commands, _, _ = follow(hiding(4), GOAL, tidy)
    opened = [command.removeprefix("open ") for command in commands if command[:4] == "open"]
    closed = [command.removeprefix("close ") for command in commands if command[:5] == "close"]
    assert opened == closed == ["cabinet 2", "cabinet 1", "drawer 1", "fridge 1"]
    for name in closed:
        assert commands[commands.index(f"close {name}") + 1].startswith("go to ")


def test_dawdling_is_a_knob(games):
    idle = ("look", "inventory", "examine")
    always = DIRECT.model_copy(update={"dawdle": 1.0})
    for compiled, goal in games[:12]:
        direct = follow(compiled, goal, DIRECT)[0]
        dawdled = follow(compiled, goal, always)[0]
        assert not any(command.startswith(idle) for command in direct)
        assert [command for command in dawdled if not command.startswith(idle)] == direct
        assert dawdled[0].startswith(idle)


def test_revisits_go_where_it_has_been():
    back = DIRECT.model_copy(update={"revisit": 1.0})
    commands, _, _ = follow(hiding(5), GOAL, back, cap=30)
    goes = [command for command in commands if command.startswith("go to")]
    # With nowhere to go back to it takes a new place; from then on it only revisits.
    assert goes[0] == "go to cabinet 2"
    assert set(goes) == {"go to cabinet 2", "go to cabinet 1"}


def test_a_random_order_is_not_the_listing():
    shuffled = DIRECT.model_copy(update={"order": "random"})
    first = {follow(hiding(4), GOAL, shuffled, cap=1, seed=seed)[0][0] for seed in range(30)}
    assert len(first) > 3
    picked = DIRECT.model_copy(update={"random_pick": 1.0})
    first = {follow(hiding(4), GOAL, picked, cap=1, seed=seed)[0][0] for seed in range(30)}
    assert len(first) > 3


def test_of_two_it_leaves_the_one_that_is_home():
    house = House(
        "bedroom", ("Desk", "Dresser", "SideTable"), (("Pen", 0), ("Pen", 2), ("Book", 1))
    )
    mission = Goal("pick_two_obj_and_place", "Pen", "Desk", "")
    compiled = CompiledGame(game(house, mission, "put two pen in desk", "move"))
    commands, _, won = follow(compiled, "put two pen in desk", DIRECT)
    assert won
    assert "take pen 1 from desk 1" not in commands
    assert commands[-1] == "move pen 2 to desk 1"


def test_a_missing_target_never_stops_it():
    opening = "Looking quickly around you, you see a shelf 1.\n\nYour task is to: put a pen in bed."
    searcher = Searcher(opening, "put a pen in bed.", DIRECT, np.random.default_rng(0))
    assert searcher.act() == "go to shelf 1"
    answer = "On the shelf 1, you see a book 1."
    assert [searcher.act(answer) for _ in range(50)] == ["examine shelf 1"] * 50


def test_what_it_cannot_read_is_an_error():
    opening = "You see a shelf 1.\n\nYour task is to: Tidy up."
    with pytest.raises(UserError, match="cannot parse the goal 'Tidy up.'"):
        Searcher(opening, "Tidy up.", SearcherSettings(), np.random.default_rng(0))
    with pytest.raises(UserError, match="no receptacle"):
        Searcher("Nothing here.", "put a pen in bed", SearcherSettings(), np.random.default_rng(0))


def test_the_informed_searcher_tries_favourites_first_and_the_goal_type_last():
    commands, _, _ = follow(
        hiding(5), GOAL, DIRECT, favourites=lambda listed, kind: {"countertop", "fridge", "shelf"}
    )
    assert commands[:3] == ["go to fridge 1", "open fridge 1", "go to shelf 1"]
    commands, _, _ = follow(
        hiding(2), GOAL, DIRECT, favourites=lambda listed, kind: {"countertop", "fridge"}
    )
    goes = [command for command in commands if command.startswith("go to")]
    assert goes[:6] == [
        "go to fridge 1",
        "go to cabinet 2",
        "go to cabinet 1",
        "go to drawer 1",
        "go to shelf 1",
        "go to countertop 1",
    ]


def test_knowing_the_habits_pays(games):
    household = Household(GenerateSettings(receptacles=(7, 9)))
    within = {"stranger": 0, "informed": 0}
    for seed, (compiled, goal) in enumerate(games):
        stranger = SearcherSettings()
        within["stranger"] += follow(compiled, goal, stranger, 12, seed)[2]
        knowing = informed(stranger)
        within["informed"] += follow(compiled, goal, knowing, 12, seed, household.usual)[2]
    assert within["informed"] > 0.7 * len(games) > 0.6 * len(games) > within["stranger"]


def test_the_expert_stage(tmp_path):
    config = {
        "name": "alfworld",
        "games": {"generate": {}},
        "panels": {"train": 12, "validation": 6, "test": 6},
        "expert": {"trajectories": 30, "walkthrough_share": 0.4},
    }
    config_json = json.dumps({"env": config})
    run_stage("assets", "--config", config_json, "--out", tmp_path / "assets")
    for name in ("one", "two"):
        argv = ["--config", config_json, "--assets", tmp_path / "assets", "--seed", 7]
        run_stage("expert", *argv, "--out", tmp_path / name)
    one, two = (tmp_path / name / "trajectories.parquet" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()

    rows = pd.read_parquet(one)
    summary = json.loads((tmp_path / "one/summary.json").read_bytes())
    assert len(rows) == summary["trajectories"] == 30
    assert rows.groupby("task_id").size().tolist().count(3) == 6  # 30 over 12 games: 2 or 3 each
    assert set(rows["source"]) == {"expert", "walkthrough"}
    assert (rows["observations"].map(len) == rows["n_turns"] + 1).all()
    assert (rows["actions"].map(len) == rows["n_turns"]).all()
    for _, row in rows.iterrows():
        assert f"Your task is to: {row['goal'].rstrip('.')}" in row["observations"][0]
    cap = AlfworldSettings.model_validate(config).turn_cap
    share = (rows["success"] & (rows["n_turns"] <= cap)).mean()
    assert summary["success"]["all"]["at_turn_cap"] == pytest.approx(share)
    walked = rows[rows["source"] == "walkthrough"]
    assert walked["success"].all()
    expert_rows = rows[rows["source"] == "expert"]
    same_game = expert_rows.groupby("task_id")["actions"].apply(lambda a: len(set(map(tuple, a))))
    assert same_game.max() > 1  # repetitions of a game have streams of their own
