"""Looking at a round's trajectories: the list of a step, and one of them turn by turn."""

import sys

import pytest

from hgrpo.cli import trajectory
from hgrpo.command import run
from hgrpo.games.base import Task
from hgrpo.trajectories import store
from hgrpo.trajectories.trajectory import FinalState, Trajectory, Turn


@pytest.fixture
def show(tmp_path, monkeypatch):
    """The command on a round of two steps: a lost trajectory in the first, two in the second."""

    def turn(action, reward=0.0, admissible=True, credit=None):
        played = Turn("a hall\nwith a door", action, (0, 0), reward, 0.5, admissible, False)
        played.credit = credit
        return played

    task = Task("hall-7", "hall-7", "hash", "open_door")
    first = [Trajectory(task, 0, "open the door.", turns=[turn("wait")], truncated=True)]
    won = [
        turn("go\x1b[2J north", admissible=False, credit=-0.25),
        turn("open door 1", 1.0, credit=0.75),
    ]
    end = FinalState("The door is open.", "", "")
    second = [
        Trajectory(task, 0, "open the door.", turns=[turn("wait")]),
        Trajectory(task, 1, "open the door.", turns=won, success=True, final=end),
    ]
    for step, played in enumerate((first, second)):
        store.write_step(played, 3, step, tmp_path)
    store.join_steps(tmp_path, 2, tmp_path)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["trajectory", str(tmp_path), *words])
        run(trajectory.main)

    return call


def test_a_step_is_a_list(show, capsys):
    show("--step", "1")
    assert capsys.readouterr().out.splitlines() == [
        "number  return  turns  rollout  task",
        "     0       0      1        0  open_door: open the door.",
        "     1       1      2        1  open_door: open the door.",
    ]


def test_a_trajectory_turn_by_turn(show, capsys):
    show("--step", "1", "--number", "1")
    assert capsys.readouterr().out.splitlines() == [
        "round 3, step 1, task_id hall-7, rollout 1",
        "open the door. (return 1, success)",
        "",
        "      a hall with a door",
        "  1 > go [2J north",
        "      env_reward 0, progress 0.5, credit -0.25, not admissible",
        "",
        "      a hall with a door",
        "  2 > open door 1",
        "      env_reward 1, progress 0.5, credit 0.75",
        "",
        "      The door is open.",
    ]


def test_the_first_step_is_the_default_and_an_end_without_success_is_named(show, capsys):
    show("--number", "0")
    assert "open the door. (return 0, cut off)" in capsys.readouterr().out
    show("--step", "1", "--number", "0")
    assert "open the door. (return 0, no success)" in capsys.readouterr().out


@pytest.mark.parametrize("number", ["1", "-1"])
def test_a_trajectory_that_is_not_there_is_one_line(show, capsys, number):
    with pytest.raises(SystemExit) as stopped:
        show("--number", number)
    message = f"error: --number {number}: expected a number from 0 to 0\n"
    assert (stopped.value.code, capsys.readouterr().err) == (2, message)
