from functools import partial

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from toy_round import TRAINING, check_resume, make_round, run

from hgrpo.credit.base import CreditAssigner
from hgrpo.errors import TrainingError, UserError
from hgrpo.games.base import Task
from hgrpo.games.streams import generator
from hgrpo.learning.scratch import job_scratch
from hgrpo.learning.settings import TrainingConfig
from hgrpo.learning.tasks import tasks_of_step
from hgrpo.policy.load import load_policy


def fresh_round(imitator, scratch):
    config, base, sft = imitator
    scratch.mkdir(exist_ok=True)
    return make_round(load_policy(config, base, sft), sft, scratch)


@pytest.fixture(scope="module")
def whole(imitator, tmp_path_factory):
    """A round that was played to its end."""
    play = fresh_round(imitator, tmp_path_factory.mktemp("whole"))
    run(play)
    return play


def test_reward_goes_up_and_the_last_state_is_saved_alone(whole):
    # Two of three doors by chance; the coin is always behind the second.
    assert 0.3 < whole.rows[0]["success_rate"] < 0.75
    assert whole.rows[-1]["success_rate"] > 0.9
    assert all(row["mismatch_max"] < 1e-3 for row in whole.rows)
    assert [path.name for path in whole.checkpoints.folder.glob("step_*")] == ["step_00005"]
    state = whole.learner.state()
    assert state["optimiser"]["state"][0]["step"].item() == 2 * TRAINING.steps_per_round
    assert state["kl_coefficient"] != TRAINING.kl.init


FEW = TRAINING.model_copy(update={"steps_per_round": 2, "tasks_per_step": 2})


class LastTurn(CreditAssigner):
    """The README's assigner, spoilt."""

    def __init__(self, spoil):
        self._spoil = spoil

    def assign(self, group):
        turns = [np.append(np.zeros(len(t.turns) - 1), t.env_return) for t in group.trajectories]
        return self._spoil(turns)


def test_invalid_credit_is_named_before_anything_learns_from_it(imitator, tmp_path):
    play = fresh_round(imitator, tmp_path)
    play.learner.training = FEW
    play.assigner = LastTurn(lambda rows: [row * np.nan for row in rows])
    expected = r"^test_round\.LastTurn: task \S+ rollout 0: the credit of turn 0 is nan"
    with pytest.raises(UserError, match=expected):
        run(play)


class Counting(LastTurn):
    """Subtracts the last group's mean return."""

    mean = 0.0

    def assign(self, group):
        before, self.mean = self.mean, 1 + np.mean([t.env_return for t in group.trajectories])
        return [row - before for row in super().assign(group)]


def test_the_last_group_of_a_step_is_credited_again_by_a_new_assigner(imitator, tmp_path):
    def noisy(turns):
        return [row + np.random.rand(len(row)) for row in turns]

    def same(turns):
        return turns

    cases = (LastTurn, same, False), (LastTurn, noisy, True), (Counting, same, True)
    for number, (kind, spoil, depends) in enumerate(cases):
        play = fresh_round(imitator, tmp_path / str(number))
        play.learner.training = FEW
        play.assigner, play.second = kind(spoil), partial(kind, spoil)
        first, *others = run(play)
        assert first["order_dependent_credit"] == depends
        assert not any("order_dependent_credit" in row for row in others)


@pytest.mark.parametrize("into_step", [1, 48])
def test_a_killed_round_ends_as_if_it_had_not_been_killed(imitator, tmp_path, whole, into_step):
    per_step = TRAINING.tasks_per_step * TRAINING.rollouts_per_task
    check_resume(whole, partial(fresh_round, imitator), tmp_path, 3 * per_step + into_step)
    table = pq.read_table(tmp_path / "sequences.parquet")
    assert table.num_rows == TRAINING.steps_per_round * per_step


def test_steps_of_other_keys_are_removed(tmp_path):
    with pytest.raises(KeyboardInterrupt), job_scratch(tmp_path, tmp_path, "a"):
        raise KeyboardInterrupt
    assert (tmp_path / "a").is_dir()
    with job_scratch(tmp_path, tmp_path, "b"):
        assert not (tmp_path / "a").exists()


def spoil_after(play, steps, value):
    """Multiply the objective by `value` once `steps` steps are finished."""
    right = play.learner.rule

    class Spoilt(type(right)):
        def terms(self, *arguments):
            terms = super().terms(*arguments)
            return terms * value if play.checkpoints.finished >= steps else terms

    play.learner.rule = Spoilt(**dict(right))


def test_a_loss_that_is_not_finite_keeps_the_last_good_step(imitator, tmp_path, whole):
    play = fresh_round(imitator, tmp_path)
    spoil_after(play, 2, float("nan"))
    with pytest.raises(TrainingError, match=r"the (loss|gradient) is not finite"):
        run(play)
    assert play.checkpoints.finished == 2
    resumed = fresh_round(imitator, tmp_path)
    run(resumed)
    for (_, one), (_, two) in zip(
        whole.learner.policy.trainable, resumed.learner.policy.trainable, strict=True
    ):
        assert torch.equal(one, two)


@pytest.mark.parametrize("cap", [None, 2.0])
def test_an_engine_too_far_from_the_trainer_is_not_learnt_from(imitator, tmp_path, cap):
    play = fresh_round(imitator, tmp_path)
    strict = {"mismatch_limit": 1e-12, "importance_cap": cap}
    play.learner.training = FEW.model_copy(update=strict)
    before = play.learner.state()["weights"]
    before = {name: value.clone() for name, value in before.items()}
    with pytest.raises(TrainingError, match="training.mismatch_limit: 1e-12"):
        run(play)
    after = play.learner.state()["weights"]
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert play.checkpoints.finished == 0


PANEL = [Task(f"t{i}", f"t{i}", f"h{i}", "x") for i in range(20)]


def of(seed, round_index, step):
    training = TrainingConfig(steps_per_round=2, tasks_per_step=4)
    tasks = tasks_of_step(PANEL, seed, round_index, step, training)
    return [task.task_id for task in tasks]


def test_rounds_take_consecutive_slices_of_one_order():
    order = [f"t{i}" for i in generator("task-order", 11, 0).permutation(20)]
    played = [name for r in range(1, 4) for step in range(2) for name in of(11, r, step)]
    assert played[:20] == order
    assert of(11, 1, 0) != of(23, 1, 0)


@pytest.mark.parametrize("size", [7, 8, 9, 11])
@pytest.mark.parametrize("seed", range(4))
def test_no_task_comes_twice_in_a_step_that_begins_the_panel_again(seed, size):
    training = TrainingConfig(steps_per_round=5, tasks_per_step=7)
    steps = [
        [task.task_id for task in tasks_of_step(PANEL[:size], seed, number, step, training)]
        for number in range(1, 6)
        for step in range(5)
    ]
    assert all(len(set(step)) == 7 for step in steps)
    played = [name for step in steps for name in step]
    for first in range(0, len(played) - size + 1, size):
        assert len(set(played[first : first + size])) == size


def test_a_step_of_more_tasks_than_the_panel_has_is_refused():
    training = TrainingConfig(tasks_per_step=8)
    with pytest.raises(
        UserError, match="training.tasks_per_step: 8, but the train panel has 7 tasks"
    ):
        tasks_of_step(PANEL[:7], 11, 1, 0, training)
