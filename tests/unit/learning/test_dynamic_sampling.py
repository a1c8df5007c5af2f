"""Dynamic sampling: which further tasks a step plays, what it trains on, and that it resumes."""

from functools import partial

import pyarrow.parquet as pq
import pytest
from toy_round import check_resume, run, small_round, turns_of

from hgrpo.games.base import Task
from hgrpo.games.streams import generator
from hgrpo.learning.settings import DynamicSampling, TrainingConfig
from hgrpo.learning.tasks import further_tasks, tasks_of_step

PANEL = [Task(f"t{i}", f"t{i}", f"h{i}", "x") for i in range(20)]
THRICE = DynamicSampling(most_batches=3)


def test_further_tasks_are_the_others_in_an_order_of_the_step():
    training = TrainingConfig(steps_per_round=2, tasks_per_step=4, dynamic_sampling=THRICE)
    first = [task.task_id for task in tasks_of_step(PANEL, 11, 1, 1, training)]
    order = [f"t{i}" for i in generator("further-tasks", 11, 1, 1).permutation(20)]
    expected = [name for name in order if name not in first][:8]
    assert [task.task_id for task in further_tasks(PANEL, 11, 1, 1, training)] == expected
    assert len({*first, *expected}) == 12 == training.most_tasks_per_step


def test_a_panel_has_no_more_tasks_than_it_has_and_the_setting_is_off_by_default():
    training = TrainingConfig(tasks_per_step=15, dynamic_sampling=THRICE)
    assert len(further_tasks(PANEL, 11, 1, 0, training)) == 5
    assert further_tasks(PANEL, 11, 1, 0, TrainingConfig(tasks_per_step=4)) == []


def flat_round(imitator, scratch, **changes):
    """Two steps of four pairs of rollouts: about every other pair is dead."""
    few = {"steps_per_round": 2, "rollouts_per_task": 2, "dynamic_sampling": THRICE}
    return small_round(imitator, scratch, **few | changes)


def test_a_step_trains_on_as_many_living_groups_as_it_has_tasks(imitator, tmp_path):
    play = flat_round(imitator, tmp_path)
    rows = run(play)
    assert all(row["dead_groups"] > 0 for row in rows)
    for row in rows:
        assert row["n_trained_groups"] == 4
        assert row["n_trained_trajectories"] == 8
        assert row["n_groups"] == 4 + row["dead_groups"]
        assert row["n_trajectories"] == 2 * row["n_groups"]
    turns = turns_of(play)
    for _, group in turns.groupby(["step", "task_id"]):
        dead = group.groupby("rollout")["env_reward"].sum().nunique() == 1
        assert group["advantage"].isna().all() if dead else group["advantage"].notna().all()
    assert len(turns.groupby(["step", "task_id"])) == sum(row["n_groups"] for row in rows)


def test_the_steps_own_tasks_are_played_as_without_it(imitator, tmp_path):
    plays = []
    for name, sampling in (("with", THRICE), ("without", None)):
        play = flat_round(imitator, tmp_path / name, steps_per_round=1, dynamic_sampling=sampling)
        run(play)
        plays.append(pq.read_table(tmp_path / name / "sequences_00000.parquet"))
    more, few = plays
    assert more.num_rows > few.num_rows
    assert more.slice(0, few.num_rows).equals(few)


@pytest.mark.parametrize(
    ("coefficient", "sampling", "acts"),
    [(0.01, None, True), (0.0, None, False), (0.01, THRICE, False), (0.0, THRICE, False)],
)
def test_no_penalty_brings_dead_groups_back_that_others_replaced(coefficient, sampling, acts):
    training = TrainingConfig(dynamic_sampling=sampling)
    assert training.penalises_dead_groups(coefficient) is acts


def test_a_step_ends_when_it_has_played_the_most_tasks(imitator, tmp_path):
    play = flat_round(imitator, tmp_path, rollouts_per_task=1, steps_per_round=1)
    (row,) = run(play)
    # A single rollout has no peers, so every group is dead, and there is nothing to learn from.
    assert (row["n_groups"], row["n_trained_groups"]) == (12, 0)
    assert row["grad_norm"] is None


def test_a_round_killed_in_its_further_play_ends_as_if_it_had_not_been(imitator, tmp_path):
    whole = flat_round(imitator, tmp_path / "whole")
    first, second = (row["n_trajectories"] for row in run(whole))
    assert second > 9
    # In the second step, after its own tasks and the first of the further trajectories.
    make = partial(flat_round, imitator)
    check_resume(whole, make, tmp_path / "killed", first + 9)
