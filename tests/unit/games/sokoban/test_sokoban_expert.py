"""The two players: one wastes much on purpose, the other solves every level."""

from collections import Counter

import numpy as np
import pytest
from sokoban_levels import panels, world

from hgrpo.games.kinds import load
from hgrpo.games.sokoban.files import level_text
from hgrpo.games.sokoban.generator import bands
from hgrpo.games.sokoban.level import ACTIONS, Level
from hgrpo.games.sokoban.replies import read_reply

SIZES = {"train": 90, "validation": 3, "test": 60}


def expert(tmp_path, trajectories=360, **habits):
    settings = world(panels=SIZES, expert={"trajectories": trajectories, **habits})
    tasks_of = panels(settings, tmp_path)
    rows = list(load("sokoban").demonstrate(settings, tmp_path, tasks_of, 0, Counter()))
    return settings, tasks_of, rows


def test_the_expert_plays_the_same_again_and_is_poor(tmp_path):
    settings, tasks_of, rows = expert(tmp_path)
    assert rows == list(load("sokoban").demonstrate(settings, tmp_path, tasks_of, 0, Counter()))
    won = {band: np.mean([r["success"] for r in rows if r["task_type"] == name])
           for band, name in enumerate(sorted({r["task_type"] for r in rows}))}  # fmt: skip
    # It wins short levels, and has headroom: hardly any of those that need most of the actions.
    assert won[0] > 0.6 > 0.5 > won[1] > won[2]
    assert 0.25 < np.mean([r["success"] for r in rows]) < 0.55
    assert {r["source"] for r in rows} == {"expert"}


def test_its_habits_are_as_often_as_the_settings_say(tmp_path):
    _, tasks_of, rows = expert(tmp_path, single=0.7, detour=0.2, waste=0.1)
    folder, tasks = tmp_path, {task.task_id: task for task in tasks_of["train"]}
    singles, idle, first = [], [], []
    for row in rows:
        level = Level(level_text(folder, tasks[row["task_id"]].path))
        actions, _ = read_reply(row["actions"][0], 2)
        singles.append(len(actions) == 1)
        player, boxes = level.start
        after = level.move(player, boxes, level.deltas[actions[0]])
        walls = any(level.move(player, boxes, delta) == (player, boxes) for delta in level.deltas)
        if walls:
            idle.append(after == (player, boxes))
        first.append(actions[0])
    assert abs(np.mean(singles) - 0.7) < 5 * 0.46 / len(singles) ** 0.5
    assert abs(np.mean(idle) - 0.1) < 5 * 0.3 / len(idle) ** 0.5
    assert set(first) == set(range(len(ACTIONS)))


@pytest.mark.parametrize("boxes", [1, 2])
def test_the_plain_player_solves_every_level_by_a_shortest_solution(tmp_path, boxes):
    made = {"rows": 7, "columns": 7, "boxes": boxes, "lengths": [2, 10]}
    settings = world(panels=SIZES, levels={"generate": made}, penalties="ragen")
    tasks_of = panels(settings, tmp_path)
    rows = load("sokoban").ceiling(settings, tmp_path, tasks_of["test"], 0)
    names = {f"{band[0]}-{band[-1]} actions": band for band in bands((2, 10))}
    for row in rows:
        taken = sum(len(read_reply(reply, 2)[0]) for reply in row["actions"])
        assert row["success"]
        assert taken in names[row["task_type"]]
        assert row["n_turns"] == (taken + 1) // 2
    if boxes == 1:
        taken = [sum(len(read_reply(a, 2)[0]) for a in row["actions"]) for row in rows]
        assert [row["score"] for row in rows] == pytest.approx([11 - 0.1 * n for n in taken])


def test_a_level_that_cannot_be_won_any_more_is_played_on(tmp_path):
    _, _, rows = expert(tmp_path, trajectories=300, detour=0.9, waste=0.0, single=0.0)
    lost = [row for row in rows if not row["success"]]
    assert len(lost) > 30
    assert {row["n_turns"] for row in lost} == {5}
