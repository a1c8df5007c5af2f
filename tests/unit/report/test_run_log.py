"""The log rows of runs: read from files as the rounds write them."""

import json

import pytest
from watched_study import row

from hgrpo.errors import UserError
from hgrpo.report.run_log import RunPlan, run_log

PLAN = RunPlan("slow", 11, 3)


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def finish(tmp_path, number, rows):
    write(tmp_path / f"rl/slow/seed_11/round_{number}/train_log.json", json.dumps({"rows": rows}))


def test_before_anything_has_run_and_after_it(tmp_path):
    assert run_log(tmp_path, PLAN) == ([], False)
    (tmp_path / "scratch/slow/seed_11/round_1/key").mkdir(parents=True)
    assert run_log(tmp_path, PLAN) == ([], False)
    for number in (1, 2, 3):
        finish(tmp_path, number, [row(0), row(1)])
    assert run_log(tmp_path, PLAN) == ([row(0), row(1)] * 3, True)


def test_a_round_in_hand_by_hand(tmp_path):
    first = [row(step, elapsed_s=20.0) for step in range(4)]
    finish(tmp_path, 1, first)
    newest = [row(0), row(1, mean_reward=0.75)]
    write(tmp_path / "scratch/slow/seed_11/round_2/key/step_00001/rows.json", json.dumps(newest))
    assert run_log(tmp_path, PLAN) == (first + newest, False)


def test_when_an_early_round_is_played_again_later_ones_do_not_count(tmp_path):
    for number in (2, 3):
        finish(tmp_path, number, [row(0), row(1)])
    (tmp_path / "scratch/slow/seed_11/round_1/key").mkdir(parents=True)
    assert run_log(tmp_path, PLAN) == ([], False)


def test_results_of_an_earlier_run_do_not_count(tmp_path):
    """Of other settings, or of a round that the run does not play."""
    for number, settings in ((1, "new"), (2, "old"), (3, "new")):
        finish(tmp_path, number, [row(0), row(1)])
        path = tmp_path / f"rl/slow/seed_11/round_{number}/summary.json"
        write(path, f'{{"settings": "{settings}"}}')
    assert run_log(tmp_path, RunPlan("slow", 11, 2, "new")) == ([row(0), row(1)], False)


def test_a_damaged_log_is_named(tmp_path):
    path = write(tmp_path / "rl/slow/seed_11/round_1/train_log.json", '{"rows": [{"step": 0')
    with pytest.raises(UserError) as error:
        run_log(tmp_path, PLAN)
    assert str(error.value).startswith(f"{path}: not JSON (")


def test_damaged_rows_of_the_round_in_hand_are_named(tmp_path):
    path = write(tmp_path / "scratch/slow/seed_11/round_1/key/step_00000/rows.json", "[{")
    with pytest.raises(UserError) as error:
        run_log(tmp_path, PLAN)
    assert str(error.value).startswith(f"{path}: not JSON (")
