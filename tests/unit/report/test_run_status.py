"""The progress of runs: read from files as the rounds write them."""

import json
from dataclasses import replace

import pandas as pd
import pytest
from watched_study import row

from hgrpo.errors import UserError
from hgrpo.report.run_status import RunPlan, study_status

# Two arms of 3 rounds; `slow` has fewer steps.
PLANS = [
    RunPlan(method, seed, 3, steps)
    for method, steps in (("flatGRPO", 4), ("slow", 2))
    for seed in (11, 23)
]


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def finish(tmp_path, run, number, rows):
    write(tmp_path / f"rl/{run}/round_{number}/train_log.json", json.dumps({"rows": rows}))


def of(tmp_path, method, seed):
    found = {(run.method, run.seed): run for run in study_status(tmp_path, PLANS)}
    return found[method, seed]


def test_before_anything_has_run(tmp_path):
    runs = study_status(tmp_path, PLANS)
    assert [(run.method, run.seed) for run in runs] == [
        *(("flatGRPO", 11), ("flatGRPO", 23), ("slow", 11), ("slow", 23))
    ]
    for run in runs:
        assert (run.finished, run.step, run.row, run.done) == (0, None, {}, False)


def test_a_round_in_hand_by_hand(tmp_path):
    finish(tmp_path, "flatGRPO/seed_11", 1, [row(step, elapsed_s=20.0) for step in range(4)])
    newest = [row(0), row(1, mean_reward=0.75)]
    write(
        tmp_path / "scratch/flatGRPO/seed_11/round_2/key/step_00001/rows.json",
        json.dumps(newest),
    )
    run = of(tmp_path, "flatGRPO", 11)
    assert (run.finished, run.step, run.row) == (1, 2, newest[-1])


def test_a_round_that_has_begun_shows_no_step_yet(tmp_path):
    (tmp_path / "scratch/slow/seed_11/round_1/key").mkdir(parents=True)
    assert of(tmp_path, "slow", 11).step == 0


def test_when_an_early_round_is_played_again_later_ones_do_not_count(tmp_path):
    for number in (2, 3):
        finish(tmp_path, "slow/seed_11", number, [row(0), row(1)])
    (tmp_path / "scratch/slow/seed_11/round_1/key").mkdir(parents=True)
    run = of(tmp_path, "slow", 11)
    assert (run.finished, run.step, run.row) == (0, 0, {})


def test_an_untrained_arm_has_no_rounds(tmp_path):
    (run,) = study_status(tmp_path, [RunPlan("SFTOnly", 11, 0, 0)])
    assert (run.finished, run.step, run.test_success) == (0, None, None)


def test_scratch_of_a_finished_round_says_nothing(tmp_path):
    write(tmp_path / "scratch/slow/seed_11/round_1/lock", "1\n")
    finish(tmp_path, "slow/seed_11", 1, [row(0), row(1)])
    assert of(tmp_path, "slow", 11).step is None


def test_a_finished_run_with_its_test_success(tmp_path):
    for number in (1, 2, 3):
        finish(tmp_path, "slow/seed_11", number, [row(0), row(1)])
        won = [True, False, number == 3, True]
        path = tmp_path / f"eval/slow/seed_11/round_{number}/episodes.parquet"
        path.parent.mkdir(parents=True)
        pd.DataFrame(
            {
                "panel": ["test", "test", "test", "validation"],
                "temperature": [0.0, 0.0, 0.0, 0.0],
                "success": won,
            }
        ).to_parquet(path)
    run = of(tmp_path, "slow", 11)
    assert run.done
    assert run.test_success == pytest.approx(2 / 3)


def test_results_of_an_earlier_run_do_not_count(tmp_path):
    """Of other settings, or of a round that the run does not play."""
    plan = RunPlan("slow", 11, 2, 2, settings="new", evaluation="e")
    for number, settings in ((1, "new"), (2, "old"), (3, "new")):
        finish(tmp_path, "slow/seed_11", number, [row(0), row(1)])
        write(
            tmp_path / f"rl/slow/seed_11/round_{number}/summary.json",
            f'{{"settings": "{settings}"}}',
        )
        path = tmp_path / f"eval/slow/seed_11/round_{number}/episodes.parquet"
        write(path.with_name("summary.json"), '{"settings": "e"}')
        pd.DataFrame(
            {"panel": ["test"], "temperature": [0.0], "success": [number == 1]}
        ).to_parquet(path)
    (run,) = study_status(tmp_path, [plan])
    assert (run.finished, len(run.rows), run.test_success) == (1, 2, 1.0)
    (run,) = study_status(tmp_path, [replace(plan, evaluation="other")])
    assert (run.finished, run.test_success) == (1, None)


DAMAGED = [
    ('{"rows": [{"step": 0', "not JSON ("),
    ("[]", "not a train log, which has the key 'rows'"),
    ("{}", "not a train log, which has the key 'rows'"),
    ('{"rows": 3}', "not the rows of a train log"),
    ('{"rows": [3]}', "not the rows of a train log"),
    (
        '{"rows": [{"step": 0}, {"mean_reward": "x"}]}',
        "row 2: mean_reward: a number was expected, not 'x'",
    ),
]


@pytest.mark.parametrize(("text", "said"), DAMAGED)
def test_a_damaged_log_is_named(tmp_path, text, said):
    path = write(tmp_path / "rl/slow/seed_11/round_1/train_log.json", text)
    with pytest.raises(UserError) as error:
        study_status(tmp_path, PLANS)
    assert str(error.value).startswith(f"{path}: {said}")


def test_damaged_rows_of_the_round_in_hand_are_named(tmp_path):
    path = write(tmp_path / "scratch/slow/seed_11/round_1/key/step_00000/rows.json", "[{")
    with pytest.raises(UserError) as error:
        study_status(tmp_path, PLANS)
    assert str(error.value).startswith(f"{path}: not JSON (")


@pytest.mark.parametrize("of_text", [True, False])
def test_damaged_episodes_are_named(tmp_path, of_text):
    finish(tmp_path, "slow/seed_11", 1, [row(0), row(1)])
    path = write(tmp_path / "eval/slow/seed_11/round_1/episodes.parquet", "PAR1 and no more")
    if not of_text:
        pd.DataFrame({"panel": ["test"]}).to_parquet(path)
    with pytest.raises(UserError) as error:
        study_status(tmp_path, PLANS)
    assert str(error.value).startswith(f"{path}: damaged, or not an episodes file (")
    assert "\n" not in str(error.value)
