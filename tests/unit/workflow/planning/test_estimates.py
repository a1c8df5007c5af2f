"""Estimates of a study's jobs: past jobs first, then other arms, scaled, then reference rates."""

import json

import pytest
import yaml
from places import PROJECT
from travelling import imported_round

from hgrpo.study.study import load_study
from hgrpo.workflow.planning.estimates import (
    CEILING,
    OTHER_ARMS,
    OWN,
    REFERENCE,
    Estimate,
    Estimates,
)
from hgrpo.workflow.planning.machine_speed import MachineSpeed
from hgrpo.workflow.planning.reference import Reference

SPEED = MachineSpeed(0.001, 0.001, True)
STUDY = load_study(
    PROJECT / "configs/studies/bakeoff.yaml", {"methods": "SFTOnly,flatGRPO,Progressive,Vine"}
)


def seconds(folder, arm, stage="rl_round"):
    return Estimates(STUDY, folder, SPEED).seconds(stage, arm)


def benchmark(folder, name, value, stage="rl_round"):
    path = folder / f"benchmarks/{stage}/{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"s": value}) + "\n", encoding="utf-8")


def test_the_nearest_past_jobs_are_taken(tmp_path):
    expected = {
        arm: Reference(STUDY, SPEED).seconds("rl_round", arm) for arm in STUDY.round_trajectories
    }
    assert seconds(tmp_path, "Vine") == Estimate(expected["Vine"], REFERENCE)
    benchmark(tmp_path, "flatGRPO.seed_1.round_1", 10)
    benchmark(tmp_path, "flatGRPO.seed_1.round_2", 20)
    # An arm with the same work, and one whose continuations are more work.
    assert expected["Progressive"] == expected["flatGRPO"]
    assert seconds(tmp_path, "Progressive") == Estimate(pytest.approx(15), OTHER_ARMS)
    ratio = expected["Vine"] / expected["flatGRPO"]
    assert ratio > 2
    assert seconds(tmp_path, "Vine") == Estimate(pytest.approx(15 * ratio), OTHER_ARMS)
    benchmark(tmp_path, "Vine.seed_1.round_1", 7)
    assert seconds(tmp_path, "Vine") == Estimate(7, OWN)
    # An arm that the study no longer has counts for no other arm.
    benchmark(tmp_path, "gone.seed_1.round_1", 1000)
    total = 15 * 2 + 7
    assert seconds(tmp_path, "Progressive").value == pytest.approx(
        total * expected["flatGRPO"] / (2 * expected["flatGRPO"] + expected["Vine"])
    )


def test_seconds_of_imported_jobs_count_only_where_none_ran_here(tmp_path):
    benchmark(tmp_path, "flatGRPO.seed_1.round_1", 900)
    imported_round(tmp_path, "rl/flatGRPO/seed_1/round_1")
    # It is this study, but another machine.
    assert seconds(tmp_path, "flatGRPO") == Estimate(900, OTHER_ARMS)
    benchmark(tmp_path, "Progressive.seed_1.round_1", 20)
    assert seconds(tmp_path, "flatGRPO") == Estimate(pytest.approx(20), OTHER_ARMS)
    benchmark(tmp_path, "flatGRPO.seed_1.round_2", 30)
    assert seconds(tmp_path, "flatGRPO") == Estimate(30, OWN)


@pytest.mark.parametrize("text", ["", '{"s": 1', "{}", '{"s": null}', "[]"])
def test_a_benchmark_file_that_was_cut_off_counts_for_nothing(tmp_path, text):
    benchmark(tmp_path, "Vine.seed_1.round_1", 7)
    (tmp_path / "benchmarks/rl_round/Vine.seed_1.round_2.jsonl").write_text(text, encoding="utf-8")
    assert seconds(tmp_path, "Vine") == Estimate(7, OWN)


def test_bytes_of_past_jobs_win(tmp_path):
    home = tmp_path / "rl/flatGRPO/seed_11/round_1"
    home.mkdir(parents=True)
    (home / "turns.parquet").write_bytes(bytes(100))
    estimates = Estimates(STUDY, tmp_path, SPEED)
    assert estimates.bytes("rl_round", "flatGRPO") == Estimate(100, OWN)
    assert estimates.bytes("rl_round", "Vine") == Estimate(pytest.approx(100), OTHER_ARMS)
    assert estimates.bytes("sft", "shared").source == REFERENCE


def test_on_gpus_time_limits_stand_in_until_a_job_has_run(tmp_path):
    study = load_study(PROJECT / "configs/studies/alfworld_5x40.yaml")
    limit = Estimate(2 * 3600, CEILING)
    assert Estimates(study, tmp_path, SPEED).seconds("rl_round", "Progressive") == limit
    benchmark(tmp_path, "flatGRPO.seed_11.round_1", 780)
    assert Estimates(study, tmp_path, SPEED).seconds("rl_round", "Progressive") == Estimate(
        780, OTHER_ARMS
    )


@pytest.mark.parametrize(
    ("changed", "sft", "rounds"),
    [
        ({}, OWN, OWN),
        ({"seeds": "1,2", "rounds": 9}, OWN, OWN),
        ({"sft.epochs": 200}, REFERENCE, OWN),
        ({"env.expert.trajectories": 40000}, REFERENCE, REFERENCE),
        ({"training.steps_per_round": 600}, OWN, REFERENCE),
        ({"methods.flatGRPO.group_norm": "mean"}, OWN, REFERENCE),
        ({"model.train_dtype": "float32"}, REFERENCE, REFERENCE),
        ({"engine.compiled": False}, REFERENCE, REFERENCE),
    ],
)
def test_jobs_with_other_settings_do_not_count(tmp_path, changed, sft, rounds):
    arms = {"methods": "SFTOnly,flatGRPO,Progressive,Vine"}
    (tmp_path / "config.yaml").write_text(
        yaml.safe_dump(STUDY.resolved(), sort_keys=False), encoding="utf-8"
    )
    benchmark(tmp_path, "flatGRPO.seed_1.round_1", 10)
    benchmark(tmp_path, "merge", 3, "merge")
    (tmp_path / "sft").mkdir()
    (tmp_path / "sft/timing.json").write_text('{"s": 50}', encoding="utf-8")
    study = load_study(PROJECT / "configs/studies/bakeoff.yaml", arms | changed)
    estimates = Estimates(study, tmp_path, SPEED)
    assert estimates.seconds("sft", "shared").source == sft
    assert estimates.seconds("rl_round", "flatGRPO").source == rounds
    assert estimates.seconds("merge", "shared") == Estimate(3, OWN)
