"""Estimates before any job has run: by hand, for shipped studies, and against published runs."""

import json

import pytest
from places import PROJECT
from watched_study import HOUSES

from hgrpo.store.plan import SHARED, Plan
from hgrpo.study.study import load_study
from hgrpo.workflow.planning import reference as module
from hgrpo.workflow.planning.estimates import CEILING, REFERENCE, Estimates
from hgrpo.workflow.planning.forecast import forecasts, source_of, wall_minutes
from hgrpo.workflow.planning.profile import Profile
from hgrpo.workflow.planning.reference import Reference

STUDIES = ("smoke", "alfworld_5x40", "smollm2_cpu", "webshop_5x40_cpu", "sokoban")
ROW = {
    "game": "alfworld",
    "turn_cap": 10,
    "parameters": 755_712,  # those of `tiny`
    "compiled": False,
    "turns": 8.0,
    "tokens": 100.0,
    "task": 0.5,
    "demonstration": 0.25,
    "base": 2.0,
    "sft": 0.001,
    "play": 0.002,
    "update": 0.003,
    "continuation": 0.0005,
    "evaluation": 0.004,
}
RATES = {
    "float32": 3.0,
    "starts": dict.fromkeys(("assets", "expert", "base", "sft", "rl_round", "evaluate"), 1.0)
    | {"credit_fit": 2.0, "merge": 4.0},
    "each": {"merge": 0.5, "credit_fit": 0.125},
    "bytes": {"evaluate": 40.0},
    "games": [ROW, ROW | {"game": "sokoban", "turn_cap": 5, "tokens": 1.0}],
    "players": [ROW],
}


@pytest.fixture
def smoke(tmp_path, monkeypatch):
    """Loads the estimates of a small study with rates for computing by hand."""
    path = tmp_path / "rates.json"
    path.write_text(json.dumps(RATES), encoding="utf-8")
    monkeypatch.setattr(module, "REFERENCE", path)

    def load(bfloat16=True, **overrides):
        study = load_study(PROJECT / "configs/studies/smoke.yaml", HOUSES | overrides)
        return Reference(study, bfloat16)

    return load


@pytest.mark.parametrize(
    ("stage", "arm", "seconds"),
    [
        ("assets", SHARED, 1 + 64 * 0.5),  # 40, 8 and 16 tasks
        ("expert", SHARED, 1 + 2000 * 0.25),
        ("base", SHARED, 1 + 2),
        ("sft", SHARED, 1 + 2000 * 100 * 0.001),  # one epoch
        # 2 steps of 4 games, 4 rollouts each.
        ("rl_round", "flatGRPO", 1 + 32 * 100 * (0.002 + 0.003)),
        # Two alternatives of two turns of each trajectory.
        ("rl_round", "TurnRDV2CF", 1 + 32 * 100 * (0.002 + 4 * 0.0005 + 0.003)),
        ("credit_fit", "TurnRDV2CF", 2 + 32 * 0.125),
        ("evaluate", "SFTOnly", 1 + (16 + 8) * 2 * 100 * 0.004),  # two temperatures
        ("evaluate", "flatGRPO", 1 + (16 + 8) * 100 * 0.004),
        ("merge", SHARED, 4 + 13 * 0.5),  # SFTOnly, and two rounds of six arms
    ],
)
def test_seconds_of_a_job_by_hand(smoke, stage, arm, seconds):
    assert smoke().seconds(stage, arm) == pytest.approx(seconds)


def test_settings_that_make_more_work_take_longer(smoke):
    def seconds(arm="flatGRPO", stage="rl_round", **overrides):
        return smoke(methods=["SFTOnly", *{"flatGRPO", arm}], **overrides).seconds(stage, arm)

    assert seconds("PPO") == pytest.approx(1 + 3200 * (0.002 + 2.4 * 0.003))
    assert seconds("flatGRPO_dynamic") == pytest.approx(1 + 3200 * (1.8 * 0.002 + 0.003))
    assert seconds("Vine") == pytest.approx(1 + 3200 * (0.002 + 8 * 4 * 0.0005 + 0.003))
    assert seconds(**{"training.epochs": "4"}) == pytest.approx(1 + 3200 * (0.002 + 4 * 0.003))
    unvalidated = seconds(stage="evaluate", **{"evaluation.validate_trained": "false"})
    assert unvalidated == pytest.approx(1 + 16 * 100 * 0.004)


def test_seconds_follow_the_precision_and_the_model(smoke):
    assert smoke(False).seconds("sft", SHARED) == pytest.approx(1 + 3 * 200)
    larger = smoke(model="smollm2-135m").seconds("sft", SHARED)
    assert larger == pytest.approx(1 + 200 * (135_000_000 / 755_712) ** 0.9)


def test_bytes_by_hand(smoke):
    reference = smoke()
    assert reference.bytes("sft", SHARED) == 755_712 * 16
    assert reference.bytes("base", SHARED) == 755_712 * 4
    assert reference.bytes("rl_round", "flatGRPO") == 755_712 * 16 + 32 * 1024 * 2
    assert reference.bytes("evaluate", "flatGRPO") == 24 * 40


def expected(study):
    """A forecast for every job of a study of which no job has run."""
    plan = Plan(study)
    return forecasts(plan, Estimates(plan, {}, True), 2)


@pytest.mark.parametrize("name", STUDIES)
def test_every_job_has_a_figure_or_a_ceiling(name):
    study = load_study(PROJECT / f"configs/studies/{name}.yaml")
    on_gpu = study.config.resources.rl_round.gpu > 0
    for one in expected(study):
        limit = 60 * study.config.resources.of(one.job.stage).runtime
        pages = one.job.stage in ("study_config", "merge", "figures", "report")
        if on_gpu and not pages:
            assert one.seconds == (limit, CEILING), one.job
        else:
            assert one.seconds.source == REFERENCE, one.job
            assert 0 < one.seconds.value < limit, one.job
        assert one.bytes.value > 0, one.job


@pytest.mark.parametrize(
    ("name", "seeds", "minutes"),
    [
        # docs/results.md and docs/calibration.md: runs with little else on two cores with bfloat16.
        ("bakeoff", "11", 20),
        ("webshop", "11", 19),
        ("calibration_hard", "11,23,31,47,59", 62),
    ],
)
def test_published_runs_took_what_is_estimated_within_a_factor_of_two(name, seeds, minutes):
    study = load_study(PROJECT / f"configs/studies/{name}.yaml", {"seeds": seeds})
    estimate = wall_minutes(expected(study), Profile(PROJECT, cores=2))
    assert minutes / 2 < estimate < 2 * minutes


def test_gpu_hours_of_a_gpu_study_are_a_ceiling_from_its_time_limits():
    study = load_study(PROJECT / "configs/studies/alfworld_5x40.yaml")
    every = expected(study)
    # SFT 2 h; 5 arms, 2 seeds, 5 rounds of 2 h, each with an evaluation of 1 h; one of SFTOnly.
    assert sum(one.seconds.value * one.needs.gpu for one in every) / 3600 == 2 + 50 * 3 + 1
    assert source_of(every) == CEILING
