"""gym-sokoban as the oracle of the rules: the same board, reward and end after every action."""

import random

import pytest
from gym_oracle import GymGame
from sokoban_levels import world

from hgrpo.games.sokoban.level import ACTIONS, read_level
from hgrpo.games.sokoban.rewards import turn_reward

pytestmark = pytest.mark.extra("sokoban")

ACTIONS_IN_ALL, EPISODE = 50_000, 50
KINDS = [(6, 1), (8, 2), (10, 4)]


def levels(tmp_path):
    """Levels of every kind, some with boxes that start on targets."""
    from sokoban_levels import panels

    from hgrpo.games.sokoban.files import level_text

    for size, boxes in KINDS:
        made = {"rows": size, "columns": size, "boxes": boxes, "lengths": [1, 6]}
        settings = world(levels={"generate": made}, panels=dict.fromkeys(
            ("train", "validation", "test"), 15))  # fmt: skip
        out = tmp_path / f"{size}"
        for tasks in panels(settings, out).values():
            for task in tasks:
                yield read_level(level_text(out, task.path))


def test_boards_rewards_and_ends_are_those_of_gym_sokoban(tmp_path, monkeypatch):
    rng = random.Random(0)
    games = [(level, GymGame(level, EPISODE)) for level in levels(tmp_path)]
    # The image takes most of the time, and nobody looks at it.
    monkeypatch.setattr(type(games[0][1].env), "render", lambda *args, **kwargs: None)
    assert any(level.placed(level.start[1]) for level, _ in games)
    played = mismatches = solved = ended = 0
    while played < ACTIONS_IN_ALL:
        level, game = rng.choice(games)
        game.reset()
        (player, boxes), placed = level.start, level.placed(level.start[1])
        done = False
        for taken in range(EPISODE):
            number = rng.randrange(len(ACTIONS))
            player, boxes = level.move(player, boxes, level.deltas[number])
            before, placed = placed, level.placed(boxes)
            won = placed == len(boxes)
            ours = turn_reward("ragen", EPISODE, taken, 1, True, placed - before, won, taken == 0)
            over = won or taken + 1 == EPISODE
            reward, done = game.step(number)
            played += 1
            solved, ended = solved + won, ended + over
            same = (player, boxes) == game.board and abs(reward - ours) < 1e-9 and done == over
            mismatches += not same
            if done:
                break
    assert (mismatches, played >= ACTIONS_IN_ALL) == (0, True)
    assert ended > solved > 75
