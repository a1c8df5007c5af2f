import pytest

from hgrpo.envs.base import Task
from hgrpo.learning.schedule import tasks_of_step
from hgrpo.learning.settings import TrainingConfig
from hgrpo.streams import generator

PANEL = [Task(f"t{i}", f"t{i}", f"h{i}", "x") for i in range(20)]


def of(seed, round_index, step):
    training = TrainingConfig(steps_per_round=2, tasks_per_step=4)
    tasks = tasks_of_step(PANEL, seed, round_index, step, training)
    return [task.task_id for task in tasks]


def test_a_round_goes_on_where_the_round_before_it_ended():
    order = [f"t{i}" for i in generator("task-order", 11, 0).permutation(20)]
    # Round 1 takes the first two steps of four tasks each, so round 2 begins at the ninth task.
    assert of(11, 1, 1) == order[4:8]
    assert of(11, 2, 0) == order[8:12]


def test_no_task_comes_twice_before_all_came_once():
    played = [name for r in range(1, 4) for step in range(2) for name in of(11, r, step)]
    assert sorted(played[:20]) == sorted(task.task_id for task in PANEL)
    assert len(set(played[20:24])) == 4


def test_seeds_differ_and_repeat():
    assert of(11, 1, 0) == of(11, 1, 0)
    assert of(11, 1, 0) != of(23, 1, 0)


@pytest.mark.parametrize("step", [0, 1])
def test_steps_of_a_round_are_disjoint_from_the_next_rounds(step):
    assert not set(of(5, 1, step)) & set(of(5, 2, step))
