"""Estimates of a study's jobs: past jobs first, then other arms, scaled, then reference rates."""

import pytest
from places import PROJECT

from hgrpo.store.plan import SHARED, Plan
from hgrpo.study.study import load_study
from hgrpo.workflow.planning.estimates import (
    CEILING,
    OTHER_ARMS,
    OWN,
    REFERENCE,
    Estimate,
    Estimates,
)
from hgrpo.workflow.planning.reference import Reference

ARMS = {"methods": "SFTOnly,flatGRPO,Progressive,Vine"}


def plan(name="bakeoff", **changes):
    return Plan(load_study(PROJECT / f"configs/studies/{name}.yaml", changes))


@pytest.fixture(scope="module")
def bakeoff():
    return plan(**ARMS)


def past(plan, **jobs):
    """Past jobs with the settings of a plan: arm or shared stage -> (seconds, bytes) of each."""
    of_stage = {
        name: (name, None) if name in ("sft", "merge") else ("rl_round", name) for name in jobs
    }
    return {
        (stage, plan.parts(stage, arm)["settings"]): jobs[name]
        for name, (stage, arm) in of_stage.items()
    }


def estimates(plan, **jobs):
    return Estimates(plan, past(plan, **jobs), True)


def test_the_nearest_past_jobs_are_taken(bakeoff):
    def seconds(arm, **jobs):
        return estimates(bakeoff, **jobs).seconds("rl_round", arm)

    study = bakeoff.study
    expected = {
        arm: Reference(study, True).seconds("rl_round", arm) for arm in study.round_trajectories
    }
    assert seconds("Vine") == Estimate(expected["Vine"], REFERENCE)
    flat = {"flatGRPO": [(10, 1), (20, 1)]}
    # An arm with the same work, and one whose continuations are more work.
    assert expected["Progressive"] == expected["flatGRPO"]
    assert seconds("Progressive", **flat) == Estimate(pytest.approx(15), OTHER_ARMS)
    ratio = expected["Vine"] / expected["flatGRPO"]
    assert ratio > 2
    assert seconds("Vine", **flat) == Estimate(pytest.approx(15 * ratio), OTHER_ARMS)
    both = flat | {"Vine": [(7, 1)]}
    assert seconds("Vine", **both) == Estimate(7, OWN)
    total = 15 * 2 + 7
    assert seconds("Progressive", **both).value == pytest.approx(
        total * expected["flatGRPO"] / (2 * expected["flatGRPO"] + expected["Vine"])
    )


def test_bytes_of_past_jobs_win(bakeoff):
    known = estimates(bakeoff, flatGRPO=[(1, 100)])
    assert known.bytes("rl_round", "flatGRPO") == Estimate(100, OWN)
    assert known.bytes("rl_round", "Vine") == Estimate(pytest.approx(100), OTHER_ARMS)
    assert known.bytes("sft", SHARED).source == REFERENCE


def test_on_gpus_time_limits_stand_in_until_a_job_has_run():
    study = plan("alfworld_5x40")
    limit = Estimate(2 * 3600, CEILING)
    assert estimates(study).seconds("rl_round", "Progressive") == limit
    ran = estimates(study, flatGRPO=[(780, 1)])
    assert ran.seconds("rl_round", "Progressive") == Estimate(780, OTHER_ARMS)


@pytest.mark.parametrize(
    ("changed", "sft", "rounds"),
    [
        ({}, OWN, OWN),
        ({"seeds": "1,2", "rounds": 9}, OWN, OWN),
        ({"sft.epochs": 200}, REFERENCE, OWN),
        ({"training.steps_per_round": 600}, OWN, REFERENCE),
        ({"methods.flatGRPO.group_norm": "mean"}, OWN, REFERENCE),
        ({"model.train_dtype": "float32"}, REFERENCE, REFERENCE),
        ({"engine.compiled": False}, OWN, REFERENCE),
    ],
)
def test_jobs_with_other_settings_do_not_count(bakeoff, changed, sft, rounds):
    ran = past(bakeoff, flatGRPO=[(10, 1)], sft=[(50, 1)], merge=[(3, 1)])
    known = Estimates(plan(**ARMS | changed), ran, True)
    assert known.seconds("sft", SHARED).source == sft
    assert known.seconds("rl_round", "flatGRPO").source == rounds
