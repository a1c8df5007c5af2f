"""Fitting TurnRD: targets, sampling, held-out tasks, and the needle task."""

import copy
import dataclasses
import json

import numpy as np
import pytest
import torch
from needle import WIDTH, needle_task, recovery
from scipy.stats import pearsonr

from hgrpo.credit.replay import ReplayRow, split
from hgrpo.credit.turnrd.diagnostics import mean_correlation, pooled_correlation
from hgrpo.credit.turnrd.fitting import (
    evaluate,
    fit,
    loss_parts,
    lr_factor,
    sampling_weights,
)
from hgrpo.credit.turnrd.losses import make_batch, supervision_target, value_targets
from hgrpo.credit.turnrd.model import Decomposition, build_model, load_model, save_model
from hgrpo.credit.turnrd.settings import FitSettings, ModelSettings, Settings
from hgrpo.errors import UserError

SMALL = ModelSettings(layers=1, hidden=32, heads=2, dropout=0.0)


def row(task="a", rollout=0, round=1, progress=(0.5, 0.0, 0.25), env_return=1.0, targets=None):
    length = len(progress)
    return ReplayRow(
        round,
        0,
        task,
        rollout,
        np.zeros((length, 4), "<f2"),
        None,
        env_return,
        np.array(progress),
        None if targets is None else np.array(targets),
    )


def test_value_targets_by_hand():
    def target(name):
        extra = {"discount": 0.5} if name == "discounted_return" else {}
        settings = FitSettings(value_weight=1.0, value_target=name, **extra)
        return value_targets(row(), settings).tolist()

    assert target("progress") == [0.5, 0.0, 0.25]
    assert target("return_share") == pytest.approx([1 / 3] * 3)
    assert target("discounted_return") == [0.25, 0.5, 1.0]


def test_supervision_is_the_share_of_praise():
    assert supervision_target(row(targets=[0.6, np.nan, 0.2])).tolist() == pytest.approx(
        [0.75, 0.0, 0.25]
    )


@pytest.mark.parametrize(
    "targets",
    [None, [-0.5, np.nan, 0.0], [np.nan, 0.5, np.nan]],
    ids=["none played", "no praise", "one drawn"],
)
def test_verdicts_teach_only_where_two_turns_were_drawn_and_one_is_praised(targets):
    assert supervision_target(row(targets=targets)).tolist() == [0, 0, 0]


def test_turns_that_were_not_drawn_are_not_taught_to_weigh_nothing():
    """The same weights, moved to another place among the turns that were not drawn."""
    settings = FitSettings(supervision_weight=1.0)
    batch, targets = make_batch([row(targets=[1.0, np.nan, 0.5])], settings)
    assert targets.drawn.tolist() == [[True, False, True]]

    def loss(*alpha):
        output = Decomposition(torch.tensor([alpha]), torch.ones(1), None, torch.zeros(1, 3, 2))
        return loss_parts(output, batch, targets, settings)["supervision"].item()

    assert loss(0.2, 0.7, 0.1) == pytest.approx(0, abs=1e-6), "two thirds and one third"
    assert loss(0.1, 0.7, 0.2) == pytest.approx(loss(1 / 3, 0.0, 2 / 3)) and loss(0.1, 0.7, 0.2) > 0


def test_correlation_within_pairs_is_scipys():
    draws = np.random.default_rng(0)
    pairs = [(draws.dirichlet(np.ones(size)), draws.normal(size=size)) for size in range(2, 40)]
    for pair in pairs:
        assert mean_correlation([pair]) == pytest.approx(pearsonr(*pair).statistic)
    assert mean_correlation([(np.ones(3), pairs[1][0])]) is None


def test_correlation_over_all_pairs_is_of_centred_sides():
    # Centred: (1, -1) with (1, -1), and (-3, 3) with (1, -1): (2 - 6) / sqrt(20 * 4).
    pairs = [(np.array([4.0, 2.0]), np.array([1.0, -1.0]))]
    pairs.append((np.array([0.0, 6.0]), np.array([9.0, 7.0])))
    assert pooled_correlation(pairs) == pytest.approx(-4 / np.sqrt(80))
    assert pooled_correlation(pairs[:1]) is None
    assert pooled_correlation([(np.ones(2), np.array([1.0, 0.0]))] * 3) is None


def test_weights_are_compared_with_verdicts_among_the_drawn_turns():
    """Large weights on turns that were not drawn are no disagreement."""
    rows = [
        row(task=f"t{i}", progress=(0, 0, 0), targets=t)
        for i, t in enumerate(([1.0, 0.0, np.nan], [0.0, 1.0, np.nan], [np.nan, 0.4, 0.2]))
    ]

    class Says(torch.nn.Module):
        def forward(self, batch):
            alpha = torch.tensor([[0.2, 0.1, 0.7], [0.01, 0.02, 0.97], [0.7, 0.2, 0.1]])
            return Decomposition(alpha, torch.ones(3), None, torch.zeros(3, 3, 2))

    metrics = evaluate(Says(), rows, FitSettings(supervision_weight=1.0))
    # Shares of 2/3 and 1/3 each time; targets apart by 1, 1 and 1/3.
    weights, praise = np.array([1, 1, 1]) / 3, np.array([1, 1, 1 / 3])
    expected = weights @ praise / np.sqrt((weights @ weights) * (praise @ praise))
    assert metrics["alpha_cf_corr"] == pytest.approx(expected, rel=1e-5)
    assert metrics["supervised_share"] == 1


def test_sampling_halves_with_age():
    weights = sampling_weights(np.array([1, 3, 5]), 2.0)
    assert weights.tolist() == pytest.approx(np.array([0.25, 0.5, 1.0]) / 1.75)
    assert sampling_weights(np.array([1, 5]), None).tolist() == [0.5, 0.5]


def names(rows):
    return {row.task_id for row in rows}


@pytest.mark.parametrize("share", [0.01, 0.2, 0.49])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 4, 30), (2, 2, 2), (20, 20, 20)])
def test_what_a_later_fit_holds_out_no_earlier_fit_trained_on(share, sizes):
    for seed in range(20):
        rows, trained, held = [], set(), set()
        for number, size in enumerate(sizes, start=1):
            begun = sum(sizes[: number - 1])
            # One task of the round before is played again.
            played = range(max(0, begun - 1), begun + size)
            rows += [row(task=f"t{i}", round=number) for i in played]
            training, held_out = split(rows, share, seed)
            assert training
            assert len(names(rows)) == 1 or held_out
            assert not names(held_out) & trained
            assert held <= names(held_out), "what was held out stays so"
            trained |= names(training)
            held = names(held_out)


def test_weights_that_no_epoch_improves_are_kept():
    rows, _ = needle_task(60, 0, "train")
    model = build_model(SMALL, WIDTH, 0)
    fit(model, rows, FitSettings(epochs=6, lr=1e-3, patience=6, batch=8), 0)
    before = copy.deepcopy(model.state_dict())
    seen = []
    log = fit(model, rows, FitSettings(epochs=3, lr=3.0, batch=8), 0, seen.append)
    assert [entry["phase"] for entry in log] == ["start", "replay"]
    assert log[0]["epoch"] == -1 and seen == log[1:]
    assert log[0]["validation_loss"] < log[1]["validation_loss"]
    assert all(torch.equal(before[name], t) for name, t in model.state_dict().items())


def test_warmup_and_cosine():
    settings = FitSettings(schedule="warmup_cosine", warmup_steps=4)
    factors = [lr_factor(step, 12, settings) for step in range(13)]
    assert factors[:4] == [0.25, 0.5, 0.75, 1.0]
    assert factors[8] == pytest.approx(0.5)
    assert factors[12] == pytest.approx(0)
    assert lr_factor(7, 12, FitSettings()) == 1


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_needle_is_found(version):
    rows, _ = needle_task(1500, 0, "train")
    shape = ModelSettings(version=version, hidden=64, dropout=0.0, value_head=version == "v2")
    model = build_model(shape, WIDTH, 0)
    before = recovery(model, *needle_task(200, 0, "held-out"))
    fit(model, rows, FitSettings(epochs=12, lr=2e-3, patience=12, half_life=None), 0)
    after = recovery(model, *needle_task(200, 0, "held-out"))
    assert before["alpha_at_needle"] < 0.3
    assert after["alpha_at_needle"] > 0.5
    assert after["argmax_accuracy"] > 0.75
    assert after["return_corr"] > 0.75


def test_the_same_seed_fits_the_same_model_and_leaves_other_randomness_alone():
    rows, _ = needle_task(100, 0, "train")
    shape = SMALL.model_copy(update={"dropout": 0.2})
    states = []
    for _ in range(2):
        model = build_model(shape, WIDTH, 5)
        torch.manual_seed(9)
        fit(model, rows, FitSettings(epochs=2, batch=16), 7)
        states.append((model.state_dict(), torch.rand(1)))
    assert all(torch.equal(states[0][0][name], states[1][0][name]) for name in states[0][0])
    torch.manual_seed(9)
    assert states[0][1] == torch.rand(1)


def test_fresh_epochs_come_last_and_only_from_new_rounds():
    rows, _ = needle_task(60, 0, "train")
    rows = [dataclasses.replace(r, round=1 + i % 3) for i, r in enumerate(rows)]
    settings = FitSettings(epochs=2, patience=2, fresh_rounds=1, fresh_epochs=2, batch=8)
    log = fit(build_model(SMALL, WIDTH, 0), rows, settings, 0)
    assert [entry["phase"] for entry in log] == ["start", "replay", "replay", "fresh", "fresh"]


def test_supervision_pulls_alpha_to_the_counterfactuals():
    rows, needles = needle_task(400, 0, "train")
    taught = []
    for each, needle in zip(rows, needles, strict=True):
        # The needle and one other turn are drawn.
        targets = np.full(len(each.progress), np.nan)
        targets[[needle, needle - 1]] = 1.0, -0.2
        taught.append(dataclasses.replace(each, env_return=0.0, targets=targets))
    settings = FitSettings(epochs=6, lr=3e-3, supervision_weight=1.0, batch=16, patience=6)
    untaught = settings.model_copy(update={"supervision_weight": 0.0})
    without = fit(build_model(SMALL, WIDTH, 0), taught, untaught, 0)[-1]
    metrics = fit(build_model(SMALL, WIDTH, 0), taught, settings, 0)[-1]
    assert without["alpha_cf_corr"] < 0.3
    assert metrics["alpha_cf_corr"] > 0.7
    assert metrics["supervised_share"] == 1


def test_a_saved_model_says_what_it_is(tmp_path):
    settings = Settings(model=SMALL)
    model = build_model(SMALL, WIDTH, 0)
    save_model(model, SMALL, WIDTH, {"best": 1}, tmp_path)
    loaded = load_model(tmp_path, settings)
    assert all(torch.equal(model.state_dict()[n], t) for n, t in loaded.state_dict().items())
    assert json.loads((tmp_path / "model.json").read_bytes())["metrics"] == {"best": 1}
    other = Settings(model=SMALL.model_copy(update={"layers": 2}))
    with pytest.raises(UserError, match="settings of the fitted model differ"):
        load_model(tmp_path, other)


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("model.safetensors", "not a complete safetensors file"),
        ("model.json", "the file is damaged"),
    ],
)
def test_a_broken_model_is_named(tmp_path, name, mistake):
    save_model(build_model(SMALL, WIDTH, 0), SMALL, WIDTH, {}, tmp_path)
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(UserError, match=f"{name}: {mistake}"):
        load_model(tmp_path, Settings(model=SMALL))
    path.unlink()
    with pytest.raises(UserError, match=f"{name}: not found"):
        load_model(tmp_path, Settings(model=SMALL))
