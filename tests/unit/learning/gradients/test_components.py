"""Gradients of a loss's components, against those that training takes."""

import copy

import numpy as np
import pytest
import torch
from hall import collect
from one_update import TRAINING, gradient, rewarded
from tiny_policy import make_policy

from hgrpo.credit.base import Context, Group, make_assigner
from hgrpo.evaluation.gradients.bucket_statistics import GroupProducts, bucket_statistics
from hgrpo.learning.batch import group_advantages, training_sequences
from hgrpo.learning.gradients.components import (
    COMPONENTS,
    Measuring,
    group_gradients,
    group_products,
)
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.settings import KlConfig
from hgrpo.policy.score_sketch import CountSketch

KL, BONUS = 0.1, 0.2
PLAIN = TRAINING.model_copy(update={"kl": KlConfig(init=0.0, watch=False)})


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    """A policy, and groups that it played, with advantages and the reference's log-probs."""
    folder = tmp_path_factory.mktemp("base")
    policy = make_policy(folder)
    policy.load_reference(folder)
    with torch.no_grad():
        for _, parameter in policy.trainable:
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=torch.manual_seed(1)))
    method = MethodConfig(name="flatGRPO")
    assigner = make_assigner(method.credit, Context())
    groups = []
    for group in rewarded(collect(policy, 64)):
        named = Group(group, ("test", group[0].task.task_id))
        group_advantages(named, assigner.assign(named), method, TRAINING)
        groups.append(training_sequences(group))
    # An update with a penalty stores the reference's log-probs.
    gradient(policy, flat(groups))
    return policy, groups


def flat(groups):
    return [sequence for group in groups for sequence in group]


def measured(setting, training=PLAIN, form="k3"):
    """The gradient of each component over all groups, and the groups' own."""
    policy, groups = setting
    how = Measuring(training, form)
    made = [group_gradients(policy, group, how) for group in groups]
    sums, sizes = torch.stack([each.gradients for each in made]), [each.size for each in made]
    return dict(zip(COMPONENTS, sums.sum(0) / sum(sizes), strict=True)), sums, sizes


def near(vector, expected):
    return float((vector - expected).norm()) < 1e-4 * float(expected.norm())


@pytest.mark.parametrize(
    "reduction",
    [
        {"loss_reduction": "token"},
        {"loss_reduction": "sequence"},
        {"loss_reduction": "constant", "loss_constant": 40},
    ],
)
def test_each_component_is_what_training_would_take(setting, reduction):
    policy, groups = setting
    training = PLAIN.model_copy(update=reduction)
    components, _, _ = measured(setting, training)
    task, _ = gradient(policy, flat(groups), training)
    assert near(components["task"], task)
    kl = training.model_copy(update={"kl": KlConfig(init=KL, form="k3", adaptive=False)})
    assert near(KL * components["kl"] + task, gradient(policy, flat(groups), kl)[0])
    bonus = training.model_copy(update={"entropy_bonus": BONUS})
    assert near(BONUS * components["entropy"] + task, gradient(policy, flat(groups), bonus)[0])


def test_whitened_advantages_follow_from_task_and_score(setting):
    policy, groups = setting
    components, _, _ = measured(setting)
    whitened = copy.deepcopy(groups)
    for sequence in flat(whitened):
        sequence.advantages = (sequence.advantages - 0.3) / 2
    task, _ = gradient(policy, flat(whitened), PLAIN)
    assert near((components["task"] - 0.3 * components["score"]) / 2, task)


def test_measuring_changes_neither_weights_nor_random_numbers(setting):
    policy, _ = setting
    before, state = policy.trained_state(), torch.get_rng_state()
    measured(setting)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[name], value) for name, value in policy.trained_state().items())
    assert all(parameter.grad is None for _, parameter in policy.trainable)


def test_products_are_those_of_the_gradients(setting):
    policy, groups = setting
    _, sums, sizes = measured(setting)
    how = Measuring(PLAIN, "k3")
    products = GroupProducts(
        *group_products((group_gradients(policy, group, how) for group in groups), len(groups))
    )
    expected = np.einsum("gcp,hdp->cgdh", sums.double().numpy(), sums.double().numpy())
    np.testing.assert_allclose(products.products, expected, rtol=1e-3, atol=1e-5 * expected.max())
    assert products.sizes.tolist() == sizes
    whole = torch.linalg.vector_norm(sums.double().sum(0), dim=1) / sum(sizes)
    np.testing.assert_allclose(bucket_statistics(products).norm[0], whole.numpy(), rtol=1e-4)


def test_sketches_stand_for_gradients(setting):
    policy, groups = setting
    length = sum(parameter.numel() for _, parameter in policy.trainable)
    project = CountSketch(length, 2**16, "cpu", "test")
    exact, _, _ = measured(setting)
    how = Measuring(PLAIN, "k3", project=project)
    made = [group_gradients(policy, group, how) for group in groups]
    sums, size = sum(each.gradients for each in made), sum(each.size for each in made)
    for row, name in enumerate(COMPONENTS):
        assert near(sums[row] / size, project(exact[name]))
