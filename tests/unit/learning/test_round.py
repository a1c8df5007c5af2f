from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from toy_round import TRAINING, KillError, make_round, untimed

from hgrpo.credit.base import CreditAssigner
from hgrpo.envs.base import Task
from hgrpo.errors import TrainingError, UserError
from hgrpo.learning.checkpoints import read_state
from hgrpo.learning.round import Round
from hgrpo.learning.scratch import locked_scratch
from hgrpo.learning.settings import TrainingConfig
from hgrpo.learning.tasks import tasks_of_step
from hgrpo.learning.update import Learner
from hgrpo.policy.load import load_policy
from hgrpo.streams import generator
from hgrpo.trajectories import store


def fresh_round(imitator, scratch):
    config, base, sft = imitator
    scratch.mkdir(exist_ok=True)
    return make_round(load_policy(config, base, sft), sft, scratch)


@dataclass
class Whole:
    """A round that was played to its end."""

    play: Round
    rows: list[dict]
    folder: Path


@pytest.fixture(scope="module")
def whole(imitator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    play = fresh_round(imitator, folder)
    return Whole(play, play.run(lambda row: None, lambda: None), folder)


def test_reward_goes_up_and_the_last_state_is_saved_alone(whole):
    # Two of three doors by chance; the coin is always behind the second.
    assert 0.3 < whole.rows[0]["success_rate"] < 0.75
    assert whole.rows[-1]["success_rate"] > 0.9
    assert all(row["mismatch_max"] < 1e-3 for row in whole.rows)
    assert [path.name for path in whole.folder.glob("step_*")] == ["step_00005"]
    state = whole.play.learner.state()
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
        play.run(lambda row: None, lambda: None)


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
        first, *others = play.run(lambda row: None, lambda: None)
        assert first["order_dependent_credit"] == depends
        assert not any("order_dependent_credit" in row for row in others)


@pytest.mark.parametrize("after_step", [True, False], ids=["after a step", "while it plays"])
def test_a_killed_round_ends_as_if_it_had_not_been_killed(imitator, tmp_path, whole, after_step):
    per_step = TRAINING.tasks_per_step * TRAINING.rollouts_per_task
    finished = 0

    def kill_after_step(row):
        if after_step and row["step"] == 3:
            raise KillError

    def kill_in_collect():
        nonlocal finished
        finished += 1
        if not after_step and finished == 3 * per_step + per_step // 2:
            raise KillError

    with pytest.raises(KillError):
        fresh_round(imitator, tmp_path).run(kill_after_step, kill_in_collect)
    resumed = fresh_round(imitator, tmp_path)
    assert untimed(resumed.run(lambda row: None, lambda: None)) == untimed(whole.rows)
    for name, tensor in whole.play.learner.policy.trained_state().items():
        assert torch.equal(tensor, resumed.learner.policy.trained_state()[name]), name
    for folder in (whole.folder, tmp_path):
        store.join_steps(folder, TRAINING.steps_per_round, folder)
    for name in ("turns.parquet", "sequences.parquet"):
        assert (whole.folder / name).read_bytes() == (tmp_path / name).read_bytes()
    table = pq.read_table(tmp_path / "sequences.parquet")
    assert table.num_rows == TRAINING.steps_per_round * per_step


def test_scratch_is_held_by_one_process_and_forgets_other_keys(tmp_path):
    with pytest.raises(KeyboardInterrupt), locked_scratch(tmp_path, "a") as folder:
        (folder / "x").write_text("kept after a failure", encoding="utf-8")
        raise KeyboardInterrupt
    with locked_scratch(tmp_path, "a") as folder:
        assert (folder / "x").exists()
        with pytest.raises(UserError, match="another process"), locked_scratch(tmp_path, "a"):
            pass
    assert not (tmp_path / "a").exists()
    (tmp_path / "old").mkdir()
    with locked_scratch(tmp_path, "b"):
        assert not (tmp_path / "old").exists()


def test_a_truncated_optimiser_state_is_named(tmp_path):
    path = tmp_path / "trainer_state.pt"
    torch.save(dict.fromkeys(Learner.STATE) | {"kl_coefficient": 0.1}, path)
    assert read_state(path, Learner.STATE)["kl_coefficient"] == 0.1
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(UserError, match=r"trainer_state.pt: damaged"):
        read_state(path, Learner.STATE)


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
        play.run(lambda row: None, lambda: None)
    assert play.checkpoints.finished == 2
    resumed = fresh_round(imitator, tmp_path)
    resumed.run(lambda row: None, lambda: None)
    for (_, one), (_, two) in zip(
        whole.play.learner.policy.trainable, resumed.learner.policy.trainable, strict=True
    ):
        assert torch.equal(one, two)


def test_a_step_to_weights_that_are_not_finite_is_not_kept(imitator, tmp_path):
    play = fresh_round(imitator, tmp_path)
    play.learner.training = FEW
    for group in play.learner.optimiser.param_groups:
        group["lr"] = float("inf")
    with pytest.raises(TrainingError, match="weights that are not finite"):
        play.run(lambda row: None, lambda: None)
    assert play.checkpoints.finished == 0


@pytest.mark.parametrize("cap", [None, 2.0])
def test_an_engine_too_far_from_the_trainer_is_not_learnt_from(imitator, tmp_path, cap):
    play = fresh_round(imitator, tmp_path)
    strict = {"mismatch_limit": 1e-12, "importance_cap": cap}
    play.learner.training = FEW.model_copy(update=strict)
    before = play.learner.state()["weights"]
    before = {name: value.clone() for name, value in before.items()}
    with pytest.raises(TrainingError, match="training.mismatch_limit: 1e-12"):
        play.run(lambda row: None, lambda: None)
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
    with pytest.raises(UserError, match="training.tasks_per_step: 8 tasks .* train panel has 7"):
        tasks_of_step(PANEL[:7], 11, 1, 0, training)
