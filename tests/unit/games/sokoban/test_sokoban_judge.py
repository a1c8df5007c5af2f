"""The offline rubric reads boards from the text, in every view."""

import pytest
from sokoban_levels import CORNER, PAIR, level_task, world

from hgrpo.games.kinds import load
from hgrpo.games.sokoban.env import SokobanEnv

VIEWS = ("grid", "coord", "grid_coord")


def scores(tmp_path, text, replies, **settings):
    env = SokobanEnv(tmp_path, world(**settings))
    seen, success = env.reset(level_task(tmp_path, text)).text, False
    turns = []
    for reply in replies:
        turns.append((seen, reply))
        step = env.step(reply)
        seen, success = step.observation.text, step.success
    return load("sokoban").judge_text().score("push every box onto a target.", turns, success)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    ("text", "replies", "expected"),
    [
        (CORNER, ["Left || Down", "Right || Down", "Right || Up"], [5, 8, 10]),
        (CORNER, ["Up", "hop", "", "Left", "Right"], [1, 0, 0, 5, 2]),
        (CORNER, ["Left", "Right", "Down", "Up"], [5, 2, 3, 2]),
        (PAIR, ["Right || Right", "Left", "Up"], [0, 5, 2]),
        (PAIR, ["Down || Right", "Right"], [8, 10]),
    ],
)
def test_scores_by_hand(tmp_path, view, text, replies, expected):
    assert scores(tmp_path, text, replies, view=view) == expected
    assert scores(tmp_path, text, replies, view=view, symbols="W.GBCA@") == expected


def test_a_box_brought_onto_its_target_is_worth_most(tmp_path):
    two = "#######\n#@$. .#\n#   $ #\n#     #\n#######"
    assert scores(tmp_path, two, ["Right", "Up"]) == [10, 2]
