"""The critic: its loss by hand, its values and gradients on a tiny model, and a round of PPO."""

import copy

import numpy as np
import pytest
import torch
from hall import collect
from safetensors.torch import load_file
from tiny_policy import make_policy
from torch.optim import SGD, AdamW

from hgrpo.errors import TrainingError, UserError
from hgrpo.learning.batch import training_sequences
from hgrpo.learning.critic import (
    Critic,
    check_critic,
    estimates,
    explained_variance,
    save_critic,
    store_advantages,
    value_head,
    value_loss,
)
from hgrpo.learning.gae import Estimate
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.scratch import CRITIC
from hgrpo.learning.settings import CriticConfig, GaeConfig, TrainingConfig

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
    made = estimates(critic, trajectories, values, PPO, TrainingConfig())
    row = store_advantages(trajectories, sequences, made, [True] * len(sequences))
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
        made = [
            Estimate(r - v, np.full(len(v), r), np.ones(len(v), dtype=bool))
            for r, v in zip(scaled, before, strict=True)
        ]
        critic.update(sequences, before, made, range(len(sequences)))
        moved.append(critic.head.weight.detach().clone())
    assert torch.allclose(*moved, atol=1e-6)


def test_trajectories_that_are_left_out_decide_nothing(played):
    folder, trajectories = played
    critic, sequences = make_critic(folder), batch_of(trajectories)
    made = estimates(critic, trajectories, critic.values(sequences), PPO, TrainingConfig())
    won = [t.env_return == 1.0 for t in trajectories]
    row = store_advantages(trajectories, sequences, made, won)
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
        made = estimates(critic, trajectories, before, PPO, TrainingConfig())
        critic.update(sequences, before, made, range(len(sequences)))
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
        made = estimates(critic, trajectories, before, PPO, TrainingConfig())
        row = critic.update(sequences, before, made, range(len(sequences)))
    assert row["explained_variance"] > 0.5


def test_saved_weights_come_back_and_another_base_is_refused(played, tmp_path):
    folder, _ = played
    critic = make_critic(folder)
    torch.nn.init.constant_(critic.head.weight, 0.5)
    save_critic(critic, tmp_path / CRITIC, "abc")
    other = make_critic(folder)
    check_critic(tmp_path / CRITIC, "abc")
    other.load_weights(load_file(tmp_path / CRITIC))
    assert all(
        torch.equal(a, b)
        for a, b in zip(critic.weights().values(), other.weights().values(), strict=True)
    )
    with pytest.raises(
        UserError, match=r"critic\.safetensors: the critic belongs to base model abc, not"
    ):
        check_critic(tmp_path / CRITIC, "def")
    save_critic(None, tmp_path / CRITIC, "abc")
    with pytest.raises(UserError, match="contains no critic"):
        check_critic(tmp_path / CRITIC, "abc")


def test_gae_with_turn_credit_is_refused():
    with pytest.raises(ValueError, match="advantage: gae computes advantages from the critic"):
        MethodConfig(name="x", advantage="gae", alpha=0.5)


def values_by_position(sequences):
    """Values of a critic by which a state is worth its number of tokens."""
    return [np.concatenate([np.arange(a, b, dtype=float) for a, b in s.spans]) for s in sequences]


@pytest.mark.parametrize("truncation", ["end", "bootstrap"])
@pytest.mark.parametrize("name", ["gae", "turn_gae", "bi_level_gae"])
def test_truncated_episodes_end_or_go_on_as_the_setting_says(played, monkeypatch, name, truncation):
    folder, trajectories = played
    critic = make_critic(folder)
    monkeypatch.setattr(critic, "values", values_by_position)
    cut = next(t for t in trajectories if t.truncated)
    won = copy.deepcopy(cut)
    won.truncated, won.unread = False, []
    overflown = copy.deepcopy(cut)
    overflown.token_ids, overflown.unread = [*cut.token_ids, *cut.unread], []
    method = MethodConfig(name="PPO", advantage=name)
    training = TrainingConfig(gae=GaeConfig(lam=0.0, gamma_high=1.0, truncation=truncation))
    batch = [cut, won, overflown]
    values = critic.values(batch_of(batch))
    made = estimates(critic, batch, values, method, training)
    for trajectory, row, estimate_made in zip(batch, values, made, strict=True):
        last = trajectory.turns[-1]
        state = len(cut.token_ids) + len(cut.unread)
        after = state if trajectory.truncated and truncation == "bootstrap" else 0.0
        before = row[-(last.span[1] - last.span[0])] if name == "turn_gae" else row[-1]
        assert estimate_made.advantages[-1] == pytest.approx(last.env_reward + after - before)


def test_the_value_after_a_cut_is_the_one_before_a_further_reply(played):
    """The critic itself: an episode that went on gives the value of its state, whatever follows."""
    folder, trajectories = played
    critic = make_critic(folder)
    torch.nn.init.normal_(critic.head.weight, std=0.1, generator=torch.manual_seed(0))
    long = next(t for t in trajectories if t.truncated and len(t.turns) > 1)
    start = long.turns[-1].span[0]
    shorter = copy.deepcopy(long)
    shorter.turns, closing = long.turns[:-1], long.turns[-2].span[1]
    shorter.token_ids, shorter.unread = long.token_ids[:closing], long.token_ids[closing:start]
    sequence = batch_of([long])
    first = long.turns[-1].span[1] - start
    expected = critic.values(sequence)[0][-first]
    config = GaeConfig(lam=0.0, truncation="bootstrap")
    before = np.zeros(sum(turn.span[1] - turn.span[0] for turn in shorter.turns))
    (made,) = estimates(critic, [shorter], [before], PPO, TrainingConfig(gae=config))
    assert made.advantages[-1] == pytest.approx(expected, abs=1e-5)
    assert abs(expected) > 1e-4


def test_a_state_longer_than_the_positions_is_cut_to_them(played, monkeypatch):
    folder, trajectories = played
    critic = make_critic(folder)
    monkeypatch.setattr(critic, "values", values_by_position)
    cut = next(t for t in trajectories if t.truncated)
    monkeypatch.setattr(critic.body.architecture, "max_position_embeddings", len(cut.token_ids))
    training = TrainingConfig(gae=GaeConfig(lam=0.0, truncation="bootstrap"))
    values = critic.values(batch_of([cut]))
    (made,) = estimates(critic, [cut], values, PPO, training)
    after = made.advantages[-1] - cut.turns[-1].env_reward + values[0][-1]
    # A position is left for the reply.
    assert after == len(cut.token_ids) - 1


def test_a_value_that_is_not_finite_names_task_and_turn(played):
    folder, trajectories = played
    critic = make_critic(folder)
    torch.nn.init.constant_(critic.head.bias, float("nan"))
    with pytest.raises(
        TrainingError, match=r"^task hall-\S+ rollout \d turn \d: the critic's value"
    ):
        critic.values(batch_of(trajectories))
