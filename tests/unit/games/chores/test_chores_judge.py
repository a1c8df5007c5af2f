"""The offline rubric of chores reads which replies had an effect, and no more."""

import pytest
from test_chores import task, world

from hgrpo.games.chores.env import ChoresEnv
from hgrpo.games.chores.game import Game, habits_of
from hgrpo.games.kinds import load


@pytest.mark.parametrize(
    ("right", "expected"), [("right", [5, 0, 0, 5, 10]), ("wrong", [5, 0, 0, 5, 2])]
)
def test_scores_by_hand(right, expected):
    settings = world(chores=3, pass_score=1.0)
    env = ChoresEnv(settings)
    turns, text = [], env.reset(task(settings, game(settings))).text
    for choice in (right, "nowhere", "", right, right):
        wrong = next(c for c in env.admissible_commands() if c != env.right_command())
        command = {"right": env.right_command(), "wrong": wrong}.get(choice, choice)
        turns.append((text, command))
        step = env.step(command)
        text = step.observation.text
    assert step.done and step.success == (right == "right")
    assert load("chores").judge_text().score("g", turns, step.success) == expected


def game(settings) -> Game:
    things = tuple(habits_of(settings).place)[:3]
    return Game("baker", things, (True, True, True))
