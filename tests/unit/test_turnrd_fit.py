"""Fitting TurnRD: what is drawn and taught, when it stops, and that it finds needles."""

import json

import numpy as np
import pytest
import torch

from hgrpo.credit.turnrd.checkpoint import load_model, save_model
from hgrpo.credit.turnrd.fit import (
    fit,
    lr_factor,
    sampling_weights,
    split,
    supervision_target,
    value_targets,
)
from hgrpo.credit.turnrd.model import build_model
from hgrpo.credit.turnrd.needle import WIDTH, needle_task, recovery
from hgrpo.credit.turnrd.replay import ReplayRow
from hgrpo.credit.turnrd.settings import FitSettings, ModelSettings, Settings
from hgrpo.errors import UserError

SMALL = ModelSettings(layers=1, hidden=32, heads=2, dropout=0.0)


def row(task="a", rollout=0, round=1, progress=(0.5, 0.0, 0.25), value=1.0, targets=None):
    length = len(progress)
    return ReplayRow(
        round,
        task,
        rollout,
        np.zeros((length, 4), "<f2"),
        None,
        value,
        np.array(progress),
        None if targets is None else np.array(targets),
    )


def test_value_targets_by_hand():
    def target(name):
        return value_targets(row(), FitSettings(value_target=name, discount=0.5)).tolist()

    assert target("progress") == [0.5, 0.0, 0.25]
    assert target("return_share") == pytest.approx([1 / 3] * 3)
    assert target("discounted_return") == [0.25, 0.5, 1.0]


def test_supervision_is_the_share_of_praise():
    assert supervision_target(row(targets=[0.6, np.nan, 0.2])).tolist() == pytest.approx(
        [0.75, 0.0, 0.25]
    )


@pytest.mark.parametrize("targets", [None, [-0.5, np.nan, 0.0]])
def test_without_praise_nothing_is_taught(targets):
    assert supervision_target(row(targets=targets)).tolist() == [0, 0, 0]


def test_sampling_halves_with_age():
    weights = sampling_weights(np.array([1, 3, 5]), 2.0)
    assert weights.tolist() == pytest.approx(np.array([0.25, 0.5, 1.0]) / 1.75)
    assert sampling_weights(np.array([1, 5]), None).tolist() == [0.5, 0.5]


def test_split_keeps_tasks_together_and_always_trains():
    rows = [row(task=f"t{i}", rollout=k) for i in range(10) for k in range(4)]
    training, held_out = split(rows, 0.2, seed=3)
    assert len(training) == 32 and len(held_out) == 8
    assert not {r.task_id for r in training} & {r.task_id for r in held_out}
    assert [len(part) for part in split([row()], 0.2, 0)] == [1, 0]


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
    settings = FitSettings(epochs=12, lr=2e-3, patience=12, half_life=None)
    model = build_model(shape, WIDTH, 0)
    before = recovery(model, *needle_task(200, 0, "held-out"))
    fit(model, rows, settings, False, 0)
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
        fit(model, rows, FitSettings(epochs=2, batch=16), False, 7)
        states.append((model.state_dict(), torch.rand(1)))
    assert all(torch.equal(states[0][0][name], states[1][0][name]) for name in states[0][0])
    torch.manual_seed(9)
    assert states[0][1] == torch.rand(1)


def test_the_best_epoch_is_kept_and_patience_ends_the_fit():
    rows, _ = needle_task(60, 0, "train")
    settings = FitSettings(epochs=40, lr=1e-2, patience=2, batch=8)
    model = build_model(SMALL, WIDTH, 0)
    log = fit(model, rows, settings, False, 0)
    assert len(log) < 40
    losses = [entry["validation_loss"] for entry in log]
    assert min(losses) not in losses[-2:]


def test_fresh_epochs_come_last_and_only_from_new_rounds():
    rows, _ = needle_task(60, 0, "train")
    rows = [ReplayRow(1 + i % 3, *list(vars(r).values())[1:]) for i, r in enumerate(rows)]
    settings = FitSettings(epochs=2, fresh_rounds=1, fresh_epochs=2, batch=8)
    log = fit(build_model(SMALL, WIDTH, 0), rows, settings, False, 0)
    assert [entry["phase"] for entry in log] == ["replay", "replay", "fresh", "fresh"]


def test_supervision_pulls_alpha_to_the_counterfactuals():
    rows, needles = needle_task(400, 0, "train")
    taught = []
    for given, needle in zip(rows, needles, strict=True):
        targets = np.full(len(given.progress), np.nan)
        targets[needle] = 1.0
        taught.append(
            ReplayRow(1, given.task_id, 0, given.embeddings, None, 0.0, given.progress, targets)
        )
    settings = FitSettings(epochs=6, lr=3e-3, supervision_weight=1.0, batch=16, patience=6)
    untaught = settings.model_copy(update={"supervision_weight": 0.0})
    without = fit(build_model(SMALL, WIDTH, 0), taught, untaught, False, 0)[-1]
    found = fit(build_model(SMALL, WIDTH, 0), taught, settings, False, 0)[-1]
    assert without["alpha_cf_corr"] < 0.3
    assert found["alpha_cf_corr"] > 0.7
    assert found["supervised_share"] == 1


def test_a_saved_model_says_what_it_is(tmp_path):
    settings = Settings(model=SMALL)
    model = build_model(SMALL, WIDTH, 0)
    save_model(model, SMALL, WIDTH, {"best": 1}, tmp_path)
    loaded = load_model(tmp_path, settings)
    assert all(torch.equal(model.state_dict()[n], t) for n, t in loaded.state_dict().items())
    assert json.loads((tmp_path / "model.json").read_text())["metrics"] == {"best": 1}
    other = Settings(model=SMALL.model_copy(update={"layers": 2}))
    with pytest.raises(UserError, match="other settings"):
        load_model(tmp_path, other)


@pytest.mark.parametrize("name", ["model.safetensors", "model.json"])
def test_a_broken_model_is_named(tmp_path, name):
    save_model(build_model(SMALL, WIDTH, 0), SMALL, WIDTH, {}, tmp_path)
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(UserError, match=f"{name}: corrupted"):
        load_model(tmp_path, Settings(model=SMALL))
    path.unlink()
    with pytest.raises(UserError, match="missing"):
        load_model(tmp_path, Settings(model=SMALL))
