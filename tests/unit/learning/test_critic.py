"""The critic: its loss by hand, its values and gradients on a tiny model, and a round of PPO."""

import numpy as np
import pytest
import torch
from hall import collect
from tiny_policy import make_policy
from torch.optim import SGD, AdamW

from hgrpo.errors import UserError
from hgrpo.learning.batch import training_sequences
from hgrpo.learning.critic import (
    Critic,
    check_critic,
    explained_variance,
    read_critic,
    save_critic,
    value_head,
    value_loss,
)
from hgrpo.learning.critic_advantages import estimate, store_advantages
from hgrpo.learning.critic_settings import CriticConfig
from hgrpo.learning.file_names import CRITIC
from hgrpo.learning.gae import Estimate
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.settings import TrainingConfig

PPO = MethodConfig(name="PPO", advantage="gae")


def test_value_loss_by_hand():
    # Targets of 2, from a value of 0: 0.4 is free, 0.7 is clipped to 0.5, and at 3 too.
    values = torch.tensor([0.4, 0.7, 3.0], requires_grad=True)
    terms = value_loss(values, torch.zeros(3), torch.full((3,), 2.0), 0.5)
    assert terms.tolist() == pytest.approx([0.5 * 1.6**2, 0.5 * 1.5**2, 0.5 * 1.5**2])
    terms.sum().backward()
    assert values.grad.tolist() == pytest.approx([-1.6, 0.0, 0.0])


def test_explained_variance_by_hand():
    targets = np.array([0.0, 1.0])
    assert explained_variance(targets, targets) == 1.0
    assert explained_variance(np.zeros(2), targets) == 0.0
    assert explained_variance(targets, np.ones(2)) is None


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    trajectories = collect(make_policy(folder), 16)
    for index, trajectory in enumerate(trajectories):
        trajectory.turns[-1].env_reward = float(index % 2)
    return folder, trajectories


def make_critic(folder, optimiser=AdamW, returns=(-1.0, 1.0), **settings):
    """Its units are those of returns with mean 0 and deviation 1."""
    body = make_policy(folder)
    head = value_head(body)
    parameters = [*(p for _, p in body.trainable), *head.parameters()]
    config = CriticConfig(**settings)
    critic = Critic(body, head, optimiser(parameters, lr=config.lr), config, 4096, None)
    critic.calibrate(np.array(returns))
    return critic


def batch_of(trajectories):
    for trajectory in trajectories:
        for turn in trajectory.turns:
            turn.advantage = 0.0
    return training_sequences(trajectories)


def test_first_values_are_the_mean_and_ppo_then_whitens_returns(played):
    folder, trajectories = played
    critic, sequences = make_critic(folder), batch_of(trajectories)
    values = critic.values(sequences)
    assert all(not row.any() for row in values)
    estimates = [
        estimate(t, v, PPO, TrainingConfig()) for t, v in zip(trajectories, values, strict=True)
    ]
    row = store_advantages(trajectories, sequences, estimates, [True] * len(sequences))
    tokens = torch.cat([s.advantages for s in sequences])
    assert tokens.mean().item() == pytest.approx(0.0, abs=1e-6)
    assert tokens.square().mean().item() == pytest.approx(1.0, abs=1e-5)
    returns = np.concatenate(
        [
            np.full(len(s.behaviour), t.env_return)
            for s, t in zip(sequences, trajectories, strict=True)
        ]
    )
    assert row["advantage_mean"] == pytest.approx(returns.mean())
    assert row["advantage_deviation"] == pytest.approx(returns.std())
    for trajectory, sequence in zip(trajectories, sequences, strict=True):
        start = 0
        for turn in trajectory.turns:
            stop = start + turn.span[1] - turn.span[0]
            assert turn.advantage == pytest.approx(sequence.advantages[start:stop].mean().item())
            start = stop
        assert trajectory.turns[0].credit == pytest.approx(trajectory.env_return)


def test_values_are_in_units_of_the_first_batch(played):
    folder, trajectories = played
    critic, sequences = make_critic(folder, returns=(10.0, 30.0)), batch_of(trajectories)
    assert all((row == 20.0).all() for row in critic.values(sequences))
    torch.nn.init.constant_(critic.head.bias, 0.5)
    critic.calibrate(np.array([0.0, 1.0]))
    assert critic.values(sequences)[0] == pytest.approx(25.0)
    constant = make_critic(folder, returns=(3.0, 3.0))
    assert constant.scale.tolist() == [3.0, 1.0]


def test_the_scale_of_rewards_changes_no_step(played):
    folder, trajectories = played
    moved = []
    for factor in (1.0, 100.0):
        scaled = [factor * t.env_return for t in trajectories]
        critic, sequences = make_critic(folder, returns=scaled, lr=1e-2), batch_of(trajectories)
        before = critic.values(sequences)
        estimates = [
            Estimate(r - v, np.full(len(v), r), np.ones(len(v), dtype=bool))
            for r, v in zip(scaled, before, strict=True)
        ]
        critic.update(sequences, before, estimates, range(len(sequences)))
        moved.append(critic.head.weight.detach().clone())
    assert torch.allclose(*moved, atol=1e-6)


def test_trajectories_that_are_left_out_decide_nothing(played):
    folder, trajectories = played
    critic, sequences = make_critic(folder), batch_of(trajectories)
    estimates = [
        estimate(t, v, PPO, TrainingConfig())
        for t, v in zip(trajectories, critic.values(sequences), strict=True)
    ]
    won = [t.env_return == 1.0 for t in trajectories]
    row = store_advantages(trajectories, sequences, estimates, won)
    assert (row["advantage_mean"], row["advantage_deviation"]) == (1.0, 0.0)


def test_micro_batches_do_not_change_a_step(played):
    folder, trajectories = played
    sequences = batch_of(trajectories)
    moved = []
    for tokens in (1, 60, 4096):
        critic = make_critic(folder, SGD, minibatches=1, lr=0.1, max_grad_norm=1e9)
        torch.nn.init.constant_(critic.head.weight, 0.01)
        critic.microbatch_tokens = tokens
        before = critic.values(sequences)
        estimates = [
            estimate(t, v, PPO, TrainingConfig()) for t, v in zip(trajectories, before, strict=True)
        ]
        critic.update(sequences, before, estimates, range(len(sequences)))
        moved.append(torch.cat([tensor.flatten() for tensor in critic.weights().values()]))
    assert torch.allclose(moved[0], moved[2], atol=1e-5)
    assert torch.allclose(moved[1], moved[2], atol=1e-5)


def test_the_critic_learns_what_can_be_known(played):
    """Returns that only the task decides: the critic reads them off the first observation."""
    folder, _ = played
    trajectories = collect(make_policy(folder), 16)
    names = sorted({t.task.task_id for t in trajectories})
    for trajectory in trajectories:
        trajectory.turns[-1].env_reward = float(names.index(trajectory.task.task_id) % 2)
    critic, sequences = make_critic(folder, lr=1e-2, epochs=2, clip=10.0), batch_of(trajectories)
    for _ in range(15):
        before = critic.values(sequences)
        estimates = [
            estimate(t, v, PPO, TrainingConfig()) for t, v in zip(trajectories, before, strict=True)
        ]
        row = critic.update(sequences, before, estimates, range(len(sequences)))
    assert row["explained_variance"] > 0.5


def test_saved_weights_come_back_and_another_base_is_refused(played, tmp_path):
    folder, _ = played
    critic = make_critic(folder)
    torch.nn.init.constant_(critic.head.weight, 0.5)
    save_critic(critic, tmp_path / CRITIC, "abc")
    names = list(critic.weights())
    other = make_critic(folder)
    check_critic(tmp_path / CRITIC, "abc")
    other.load_weights(read_critic(tmp_path / CRITIC, names))
    assert all(
        torch.equal(a, b)
        for a, b in zip(critic.weights().values(), other.weights().values(), strict=True)
    )
    with pytest.raises(
        UserError, match=r"critic\.safetensors: base: a critic of the base abc, but"
    ):
        check_critic(tmp_path / CRITIC, "def")
    with pytest.raises(UserError, match="does not hold the tensors of this critic"):
        read_critic(tmp_path / CRITIC, names[1:])
    with pytest.raises(UserError, match="missing"):
        check_critic(tmp_path / "none", "abc")
    save_critic(None, tmp_path / CRITIC, "abc")
    with pytest.raises(UserError, match="it holds no critic"):
        check_critic(tmp_path / CRITIC, "abc")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"credit": {"kind": "progress"}},
            "advantage: gae takes the turns' credit from the critic",
        ),
        ({"alpha": 0.5}, "alpha: 0.5 would not be used"),
    ],
)
def test_gae_with_turn_credit_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        MethodConfig(name="x", advantage="gae", **settings)
