"""Imitation resumes from a checkpoint as if it had never stopped."""

import pytest
import torch
from tiny_policy import make_policy

from hgrpo.errors import TrainingError
from hgrpo.games.streams import generator
from hgrpo.learning.checkpoints import Checkpoints
from hgrpo.learning.imitation import Example, imitate
from hgrpo.learning.optimisers import sft_optimisers
from hgrpo.learning.sft_settings import SftConfig
from hgrpo.policy.load import load_policy

SETTINGS = SftConfig(
    epochs=2.5,
    batch_trajectories=4,
    matrix_lr=0.02,
    lr=1e-2,
    warmup_steps=2,
    weight_decay=0.01,
    microbatch_tokens=64,
    seed=3,
)
# ceil(14 examples * 2.5 epochs / 4 a batch); the third epoch ends inside a batch.
STEPS = 9


class KillError(Exception):
    pass


def examples(number, name):
    rng = generator("test-imitation", name)
    return [
        Example(rng.integers(0, 20, 6 + i % 5).tolist(), [(2, 4), (5, 6 + i % 5)])
        for i in range(number)
    ]


@pytest.fixture(scope="module", params=["full", "lora"])
def base(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    return make_policy(folder, adapt=request.param).config, folder


def train(base, checkpoints=None, on_step=lambda row: None):
    """Rows, weights and the optimisers' states; with full tuning one of them is Muon."""
    policy = load_policy(*base)
    optimisers = sft_optimisers(policy, SETTINGS)
    assert len(optimisers) == (1 if policy.lora else 2)
    data = examples(14, "train"), examples(3, "validation")
    rows = imitate(policy, optimisers, *data, SETTINGS, on_step, checkpoints)
    return rows, policy.trained_state(), [optimiser.state_dict() for optimiser in optimisers]


def same(one, other):
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@pytest.fixture(scope="module")
def whole(base):
    return train(base)


def test_killed_after_a_step_it_ends_the_same(base, tmp_path, whole):
    def kill(row):
        if row["step"] == 4:
            raise KillError

    with pytest.raises(KillError):
        train(base, Checkpoints(tmp_path), kill)
    assert Checkpoints(tmp_path).finished == 5
    rows = []
    resumed = train(base, Checkpoints(tmp_path), rows.append)
    assert same(resumed, whole)
    assert [row["step"] for row in rows] == list(range(STEPS))


def test_steps_since_the_last_saved_one_are_repeated(base, tmp_path, monkeypatch, whole):
    now = 0.0

    def pass_a_second(row):
        nonlocal now
        now += 1.0
        if row["step"] == 7:
            raise KillError

    monkeypatch.setattr("hgrpo.learning.checkpoints.monotonic", lambda: now)
    # Every step takes a second; steps 3 and 6 end when three have passed since the last save.
    with pytest.raises(KillError):
        train(base, Checkpoints(tmp_path, 3.0), pass_a_second)
    assert [path.name for path in tmp_path.iterdir()] == ["step_00006"]
    assert same(train(base, Checkpoints(tmp_path)), whole)


def test_the_number_of_threads_does_not_change_the_result(base, whole):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert same(train(base), whole)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("where", ["weights", "step"])
def test_numbers_that_are_not_finite_stop_it_and_save_nothing(base, tmp_path, where):
    policy, rows = load_policy(*base), []
    optimisers = sft_optimisers(policy, SETTINGS)
    checkpoints = Checkpoints(tmp_path)
    if where == "weights":
        with torch.no_grad():
            policy.trainable[0][1].fill_(float("nan"))
    else:
        for group in optimisers[0].param_groups:
            group["lr"] = float("inf")
    data = examples(14, "train"), examples(3, "validation")
    with pytest.raises(TrainingError, match="not finite"):
        imitate(policy, optimisers, *data, SETTINGS, rows.append, checkpoints)
    assert rows == [] and checkpoints.finished == 0
