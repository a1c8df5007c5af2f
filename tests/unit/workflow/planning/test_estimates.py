"""Estimates of a study's jobs: past jobs first, then other arms, scaled, then reference rates."""

import json

import pytest
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


def benchmark(folder, name, value):
    path = folder / f"benchmarks/rl_round/{name}.jsonl"
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
