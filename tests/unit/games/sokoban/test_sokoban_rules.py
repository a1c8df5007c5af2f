"""Sokoban's rules and rewards, on boards made by hand."""

import pickle
from itertools import product

import pytest
from sokoban_levels import CORNER, LINE, PAIR, at_level, level_task, world

from hgrpo.errors import UserError
from hgrpo.games.sokoban.env import SokobanEnv
from hgrpo.games.sokoban.level import read_level

SHORT = {"generate": {"lengths": [1, 3]}}
SHORTEST = {LINE: 2, CORNER: 6, PAIR: 3}


@pytest.mark.parametrize(
    ("start", "action", "end"),
    [
        ("#####\n#@ .#\n#  $#\n#####", "Right", "#####\n# @.#\n#  $#\n#####"),
        ("#####\n#@ .#\n#  $#\n#####", "Down", "#####\n#  .#\n#@ $#\n#####"),
        ("#####\n#@ .#\n#  $#\n#####", "Left", "#####\n#@ .#\n#  $#\n#####"),
        ("#####\n# @.#\n#  $#\n#####", "Right", "#####\n#  +#\n#  $#\n#####"),
        ("#####\n#  +#\n#  $#\n#####", "Down", "#####\n#  +#\n#  $#\n#####"),
        ("#####\n#  .#\n#  $#\n#  @#\n#####", "Up", "#####\n#  *#\n#  @#\n#   #\n#####"),
        ("######\n#@$ .#\n######", "Right", "######\n# @$.#\n######"),
        ("#######\n#@*$. #\n#######", "Right", "#######\n#@*$. #\n#######"),
        ("#######\n#@* $.#\n#######", "Right", "#######\n# +$$.#\n#######"),
        ("######\n#.$@ #\n######", "Right", "######\n#.$ @#\n######"),
        ("######\n#+ $ #\n######", "Right", "######\n#.@$ #\n######"),
    ],
)
def test_one_action(tmp_path, start, action, end):
    view = {"view": "grid", "symbols": "# .$*@+"}
    env = at_level(tmp_path, start, **view)
    text = env.step(action).observation.text
    assert text.split("\n", 1)[1] == end


@pytest.mark.parametrize("penalties", ["fair", "ragen"])
@pytest.mark.parametrize(
    ("text", "replies", "total"),
    [
        (LINE, ["Right || Right"], 10.8),
        (LINE, ["Right", "Right"], 10.8),
        (LINE, ["Up || Up", "Left || Right", "Right"], 10.5),
        (LINE, ["jump", "Right || Right"], 10.7),
        (LINE, ["Right || jump", "Right"], 10.7),
        (CORNER, ["Left || Down", "Right || Down", "Right || Up"], 10.4),
        # The box that stands on its target at the start pays nothing; the other one pays 1.
        (PAIR, ["Down || Right", "Right"], 10.7),
    ],
)
def test_what_a_solution_returns(tmp_path, penalties, text, replies, total):
    env = at_level(tmp_path, text, penalties=penalties)
    steps = [env.step(reply) for reply in replies]
    assert sum(step.env_reward for step in steps) == pytest.approx(total)
    assert [step.done for step in steps] == [False] * (len(steps) - 1) + [True]
    assert steps[-1].success
    assert sum(step.progress for step in steps) == pytest.approx(SHORTEST[text] / 11)
    assert env.admissible_commands() == []


@pytest.mark.parametrize(
    ("penalties", "replies", "rewards"),
    [
        ("ragen", ["Up || Up"] * 5, [-0.2] * 5),
        ("ragen", ["Up"] * 5, [-0.1] * 5),
        ("ragen", ["?"] * 5, [-0.1] * 5),
        ("ragen", ["Up || ?"] * 5, [-0.2] * 5),
        ("fair", ["Up || Up"] * 5, [-1.0, 0, 0, 0, 0]),
        ("fair", ["Up"] * 5, [-1.0, 0, 0, 0, 0]),
        ("fair", ["?"] * 5, [-1.1, -0.1, -0.1, -0.1, -0.1]),
    ],
)
def test_what_a_lost_game_pays(tmp_path, penalties, replies, rewards):
    env = at_level(tmp_path, LINE, penalties=penalties)
    steps = [env.step(reply) for reply in replies]
    assert [step.env_reward for step in steps] == pytest.approx(rewards)
    assert [step.done for step in steps] == [False] * 4 + [True]
    assert not steps[-1].success
    with pytest.raises(RuntimeError):
        env.step("Up")


def test_a_box_that_leaves_its_target_costs_one_and_pays_it_back(tmp_path):
    env = at_level(tmp_path, PAIR, penalties="ragen")
    rewards = [env.step(reply).env_reward for reply in ("Right", "Right", "Right || Up")]
    assert rewards == pytest.approx([-0.1, -1.1, -0.2])


def test_a_game_ends_in_the_middle_of_a_reply_when_it_is_solved(tmp_path):
    env = at_level(tmp_path, LINE, penalties="ragen", actions_per_turn=4)
    step = env.step("Right || Right || Left || Left")
    assert (step.success, step.env_reward) == (True, pytest.approx(10.8))
    assert step.observation.text == "Solved.\n######\n#__P√#\n######"


def test_a_reply_is_cut_to_the_actions_that_are_left(tmp_path):
    env = at_level(tmp_path, LINE, penalties="ragen", actions=3, levels=SHORT)
    env.step("Up || Up")
    assert len(env.admissible_commands()) == 4
    step = env.step("Right || Right")
    assert (step.env_reward, step.done, step.success) == (pytest.approx(-0.1), True, False)
    assert step.observation.text == "Lost.\n######\n#_PXO#\n######"


def test_progress_follows_the_shortest_solution_and_is_nothing_at_a_dead_end(tmp_path):
    env = at_level(tmp_path, CORNER)
    gains = [env.step(reply).progress * 11 for reply in ("Left", "Right", "Up")]
    assert gains == pytest.approx([1, -1, 0])
    gain = env.step("Down").progress
    assert gain == pytest.approx(-5 / 11)  # the potential was 1 - 6 / 11
    assert env.step("Left").progress == 0


def test_commands_are_all_replies_of_one_and_two_actions(tmp_path):
    env = at_level(tmp_path, LINE)
    names = ("Up", "Down", "Left", "Right")
    pairs = [f"{one} || {two}" for one, two in product(names, names)]
    assert env.admissible_commands() == [*names, *pairs]
    for command in env.admissible_commands():
        assert env.fork().step(command).info["admissible"]


def test_a_situation_is_the_board_however_it_was_reached(tmp_path):
    env = at_level(tmp_path, CORNER)
    start = env.situation()
    env.step("Left")
    assert env.situation() != start
    env.step("Right")
    assert env.situation() == start
    for _ in range(3):
        env.step("Up")
    assert env.situation()[0] == start[0]


def test_forks_and_pickles_play_on_alone(tmp_path):
    env = at_level(tmp_path, CORNER)
    env.step("Left || Down")
    twin, copy = env.fork(), pickle.loads(pickle.dumps(env))
    steps = [each.step("Right || Down") for each in (env, twin, copy)]
    assert steps[0] == steps[1] == steps[2]
    twin.step("Left")
    assert env.step("Right || Up") == copy.step("Right || Up") != twin.step("Right || Up")


def test_misuse_is_refused(tmp_path):
    env = SokobanEnv(tmp_path, world())
    with pytest.raises(RuntimeError, match="before `reset`"):
        env.step("Up")
    with pytest.raises(RuntimeError, match="before `reset`"):
        env.situation()
    assert env.admissible_commands() == []
    task = level_task(tmp_path, LINE)
    env.reset(task)
    with pytest.raises(TypeError, match="an action must be a string, not None"):
        env.step(None)
    other = read_level(CORNER).text
    (tmp_path / "two.xsb").write_text(f"; a\n{other}\n", encoding="utf-8")
    stale = type(task)("t", "two.xsb#0", task.content_hash, "x")
    with pytest.raises(UserError, match=r"two.xsb#0: the level has content hash .*assets stage"):
        env.reset(stale)
    with pytest.raises(UserError, match=r"two.xsb: level 7 not found; run the assets stage again"):
        env.reset(type(task)("t", "two.xsb#7", task.content_hash, "x"))
