"""The microscope: every estimator is right on average, and what is reported is what it says."""

import math
from dataclasses import fields, replace

import pytest
import torch
from opd_runs import every_rollout

from hgrpo.sandbox.nets.transformer import Transformer
from hgrpo.sandbox.opd.microscope.estimators import ESTIMATORS
from hgrpo.sandbox.opd.microscope.gradients import (
    Batches,
    can_be_listed,
    exact_gradients,
    gradients,
    sampled,
)
from hgrpo.sandbox.opd.microscope.measure import against, measure, original
from hgrpo.sandbox.opd.microscope.settings import MicroscopeSettings
from hgrpo.sandbox.opd.tasks import DistillTask
from hgrpo.sandbox.policies import SequencePolicy

SMALL = MicroscopeSettings(
    horizons=(2,), num_batches=3, batch_size=4, seeds=(0, 1), d_model=8, teacher_epsilon=0.2
)


def start(settings=SMALL, horizon=2):
    """Task, policy and weights [1, P] of the first seed."""
    task = DistillTask(settings.at(horizon))
    net = Transformer(task.sequences.actions, 2 * horizon + 1, settings.d_model, 2, 1)
    return task, SequencePolicy(net, horizon), net.init((0,))


def mean_gradients(task, policy, weights):
    """Mean gradient [P] of each estimator over all batches of two rollouts, by enumeration."""
    batch, chances = every_rollout(task, policy, weights)
    places = torch.cartesian_prod(*[torch.arange(len(chances))] * 2)
    totals = dict.fromkeys(ESTIMATORS, 0.0)
    for some in places.split(400):
        measured = gradients(policy, weights, [pairs(batch, some)], tuple(ESTIMATORS))
        chance = chances[some].prod(1).unsqueeze(1)
        for name, (_, each) in measured.items():
            totals[name] += (chance * each).sum(0)
    return totals


def pairs(batch, places):
    """Batches of the two rollouts at `places` [R, 2]."""

    def join(values):
        if isinstance(values, dict):
            return {name: join(each) for name, each in values.items()}
        return None if values is None else torch.cat([values[places[:, i]] for i in (0, 1)], 1)

    changed = {
        each.name: join(getattr(batch, each.name)) for each in fields(batch) if each.name != "age"
    }
    return replace(batch, **changed)


@pytest.fixture(scope="module")
def enumerated():
    task, policy, weights = start()
    exact = {name: each[0] for name, each in exact_gradients(task, policy, weights).items()}
    return exact, mean_gradients(task, policy, weights)


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_an_estimators_mean_is_its_objectives_gradient(name, enumerated):
    exact, means = enumerated
    ours = ESTIMATORS[name].objective
    assert torch.allclose(means[name], exact[ours], rtol=1e-3, atol=1e-5)
    (other,) = (gradient for objective, gradient in exact.items() if objective != ours)
    assert (means[name] - other).norm() > 0.1 * other.norm()


def test_the_exact_gradients_are_slopes_of_the_objectives():
    """By finite differences, along the gradient of the sequence's divergence."""
    task, policy, weights = start()
    slope = exact_gradients(task, policy, weights)["sequence"]
    step = 1e-2 * slope / slope.norm()

    def divergence(at):
        batch, chances = every_rollout(task, policy, at)
        theirs = (
            batch.extras["teacher"].gather(-1, batch.actions.unsqueeze(-1)).sum((1, 2, 3, 4, 5))
        )
        ours = batch.behaviour.sum((1, 2, 3, 4))
        return (chances.double() * (ours - theirs).double()).sum()

    rise = (divergence(weights + step) - divergence(weights - step)) / (2 * step.norm())
    assert rise.item() == pytest.approx(slope.norm().item(), rel=1e-2)


def test_batches_do_not_depend_on_how_many_are_differentiated_at_once(monkeypatch):
    task, policy, weights = start()
    drawn = list(sampled(task, policy, 0, weights, Batches("measured", 5, 4)))
    whole = gradients(policy, weights, drawn, ["token_pg"])["token_pg"]
    monkeypatch.setattr("hgrpo.sandbox.opd.microscope.gradients._AT_ONCE", 1)
    single = list(sampled(task, policy, 0, weights, Batches("measured", 5, 4)))
    assert (len(drawn), len(single)) == (1, 5)
    for one, other in zip(
        whole, gradients(policy, weights, single, ["token_pg"])["token_pg"], strict=True
    ):
        assert torch.allclose(one, other, atol=1e-5)


def test_columns_by_hand():
    each = torch.tensor([[1.0, 0.0], [3.0, 4.0]])
    exact = {"token": torch.tensor([2.0, 0.0]), "sequence": torch.tensor([0.0, 5.0])}
    assert against(each, exact, "token", doubt=0.0) == pytest.approx(
        {
            "objective_norm": 2.0,
            # Variances 2 and 8.
            "relative_variance": 10 / 4,
            "cosine": (1 + 3 / 5) / 2,
            "cosine_of_mean": 1 / math.sqrt(2),
            "cosine_other": 1 / math.sqrt(2),
            "bias": 2 / 2,
            "bias_noise": math.sqrt(5) / 2,
        }
    )
    assert against(each, exact, "token", doubt=4.0)["bias_noise"] == pytest.approx(3 / 2)
    assert original(torch.tensor([1.0, 2.0]), each, torch.tensor([0.6, 0.8])) == pytest.approx(
        {
            "loss_mean": 1.5,
            "projection_mean": 2.8,
            "projection_var": 9.68,
            "projection_std": math.sqrt(9.68),
            "grad_norm_mean": 3.0,
            "grad_norm_var": 8.0,
            "grad_norm_std": math.sqrt(8),
        }
    )


def test_a_measurement_has_a_row_for_each_horizon_seed_and_estimator():
    settings = SMALL.model_copy(update={"horizons": (2, 5, 6)})
    rows = measure(settings)
    assert [(row["seed"], row["horizon"]) for row in rows[:: len(ESTIMATORS)]] == [
        (seed, horizon) for seed in (0, 1) for horizon in (2, 5, 6)
    ]
    assert [row["estimator"] for row in rows[: len(ESTIMATORS)]] == list(ESTIMATORS)
    kinds = {row["horizon"]: row["reference"] for row in rows}
    assert kinds == {2: "listed", 5: "listed", 6: "sampled"}
    # Each seed by itself.
    alone = measure(settings.model_copy(update={"seeds": (1,)}))
    assert alone == rows[len(alone) :]


def test_a_sampled_reference_agrees_with_a_listed_one(monkeypatch):
    settings = SMALL.model_copy(update={"seeds": (0,), "reference_batches": 200})
    listed = {row["estimator"]: row for row in measure(settings)}
    module = "hgrpo.sandbox.opd.microscope.measure"
    monkeypatch.setattr(f"{module}.can_be_listed", lambda task: False)
    for row in measure(settings):
        assert row["reference"] == "sampled"
        near = listed[row["estimator"]]
        assert row["objective_norm"] == pytest.approx(near["objective_norm"], rel=0.05)
        assert row["bias_noise"] > near["bias_noise"] * 0.95


def test_what_can_be_listed():
    assert can_be_listed(start(horizon=5)[0]) and not can_be_listed(start(horizon=6)[0])
