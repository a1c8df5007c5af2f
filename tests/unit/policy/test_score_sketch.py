"""Count sketches, and sketches of turns' gradients against the gradients themselves."""

import numpy as np
import pytest
import torch
from hall import collect
from tiny_policy import make_policy

from hgrpo.policy.logprobs import make_batch, sampled_logprobs
from hgrpo.policy.score_sketch import CountSketch, ScoreSketcher


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return make_policy(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def trajectories(policy):
    return collect(policy, tasks=2, rollouts=2)


def gradient(policy, trajectory, weights):
    """Gradient of the weighted sum of the turns' log-probabilities, all parameters in a row."""
    spans = [turn.span for turn in trajectory.turns]
    batch = make_batch([trajectory.token_ids], [spans])
    logprobs, _ = sampled_logprobs(policy.causal_lm, batch, 0.7)
    lengths = torch.tensor([end - start for start, end in spans])
    per_token = torch.tensor(weights, dtype=torch.float32).repeat_interleave(lengths)
    parameters = [parameter for _, parameter in policy.trainable]
    parts = torch.autograd.grad((per_token * logprobs).sum(), parameters, materialize_grads=True)
    return torch.cat([part.reshape(-1) for part in parts]).numpy()


def sketched(sketcher, trajectory):
    return sketcher.of_turns(trajectory.token_ids, [turn.span for turn in trajectory.turns])


def test_inner_products_are_those_of_the_gradients(policy, trajectories):
    size = 16_384
    sketcher = ScoreSketcher(policy, size, 0.7)
    rng = np.random.default_rng(0)
    whole, small = [], []
    for trajectory in trajectories:
        weights = rng.normal(size=len(trajectory.turns))
        whole.append(gradient(policy, trajectory, weights))
        small.append(weights @ sketched(sketcher, trajectory))
    whole, small = np.array(whole, np.float64), np.array(small, np.float64)
    lengths = np.linalg.norm(whole, axis=1)
    error = (small @ small.T - whole @ whole.T) / np.outer(lengths, lengths)
    # A standard deviation is about 1 / sqrt(size) = 0.008, and 1.4 times that for squares.
    assert np.abs(error).max() < 0.04


def test_sketches_are_linear_and_equal_for_equal_names():
    one, other = torch.randn(2, 500, generator=torch.manual_seed(1))
    project = CountSketch(500, 64, "cpu", "a")
    torch.testing.assert_close(project(one + 2 * other), project(one) + 2 * project(other))
    assert torch.equal(CountSketch(500, 64, "cpu", "a")(one), project(one))
    assert not torch.equal(CountSketch(500, 64, "cpu", "b")(one), project(one))


def test_products_have_the_right_mean_and_spread():
    one, other = torch.randn(2, 500, generator=torch.manual_seed(1))
    other = other + one
    truth, size = float(one @ other), 256
    products = torch.tensor(
        [
            float(project(one) @ project(other))
            for project in (CountSketch(500, size, "cpu", f"draw {i}") for i in range(400))
        ]
    )
    scale = float(one.norm() * other.norm())
    bound = scale * (2 / size) ** 0.5
    assert abs(float(products.mean()) - truth) < 4 * bound / 20  # 20 = sqrt(400)
    assert 0.3 * bound < float(products.std()) < bound
