"""The table of running rounds: read from files as the rounds write them."""

import argparse
import json
import os
import subprocess
import sys
import time

import pandas as pd
import pytest
import yaml

from hgrpo.cli.entry import pause
from hgrpo.cli.monitor import cells, duration
from hgrpo.errors import UserError
from hgrpo.report.run_status import study_status


def row(step, **changes):
    return {
        "step": step,
        "mean_reward": 0.25,
        "success_rate": 0.5,
        "observed_kl": 0.001,
        "dead_groups": 3,
        "n_groups": 16,
        "elapsed_s": 10.0,
    } | changes


@pytest.fixture
def results(tmp_path):
    """Two arms of 3 rounds of 4 steps; `slow` has steps of its own number."""
    config = {
        "methods": {
            "SFTOnly": {"train": False},
            "slow": {"train": True, "training": {"steps_per_round": 2}},
            "flatGRPO": {"train": True, "training": {}},
        },
        "reference": "flatGRPO",
        "training": {"steps_per_round": 4},
        "rounds": 3,
        "seeds": [11, 23],
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    return tmp_path


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def finish(results, run, number, rows):
    write(results / f"rl/{run}/round_{number}/train_log.json", json.dumps({"rows": rows}))


def of(results, method, seed):
    found = {(run.method, run.seed): run for run in study_status(results)}
    return found[method, seed]


def test_before_anything_has_run(results):
    runs = study_status(results)
    assert [(run.method, run.seed) for run in runs] == [
        *(("flatGRPO", 11), ("flatGRPO", 23), ("slow", 11), ("slow", 23))
    ]
    for run in runs:
        assert (run.finished, run.step, run.row, run.left_s, run.done) == (0, None, {}, None, False)


def test_a_round_in_hand_by_hand(results):
    finish(results, "flatGRPO/seed_11", 1, [row(step, elapsed_s=20.0) for step in range(4)])
    newest = [row(0), row(1, mean_reward=0.75)]
    step = write(
        results / "scratch/flatGRPO/seed_11/round_2/key/step_00001/rows.json",
        json.dumps(newest),
    )
    os.utime(step, times=(time.time() - 90,) * 2)
    run = of(results, "flatGRPO", 11)
    assert (run.finished, run.step, run.row) == (1, 2, newest[-1])
    assert run.heard_s == pytest.approx(90, abs=5)
    assert run.seconds == pytest.approx((4 * 20 + 2 * 10) / 6)
    # Two steps of this round and four of the last.
    assert run.left_s == pytest.approx(6 * 100 / 6)
    # Others are reckoned at the same pace, with their own number of steps.
    assert of(results, "slow", 23).left_s == pytest.approx(6 * 100 / 6)


def test_a_round_that_has_begun_shows_no_step_yet(results):
    (results / "scratch/slow/seed_11/round_1/key").mkdir(parents=True)
    run = of(results, "slow", 11)
    assert (run.step, run.heard_s) == (0, None)


def test_scratch_of_a_finished_round_says_nothing(results):
    write(results / "scratch/slow/seed_11/round_1/lock", "1\n")
    finish(results, "slow/seed_11", 1, [row(0), row(1)])
    assert of(results, "slow", 11).step is None


def test_a_finished_run_with_its_test_success(results):
    for number in (1, 2, 3):
        finish(results, "slow/seed_11", number, [row(0), row(1)])
        won = [True, False, number == 3, True]
        path = results / f"eval/slow/seed_11/round_{number}/episodes.parquet"
        path.parent.mkdir(parents=True)
        pd.DataFrame(
            {
                "panel": ["test", "test", "test", "validation"],
                "temperature": [0.0, 0.0, 0.0, 0.0],
                "success": won,
            }
        ).to_parquet(path)
    run = of(results, "slow", 11)
    assert (run.done, run.left_s) == (True, 0.0)
    assert run.test_success == pytest.approx(2 / 3)


@pytest.mark.parametrize("content", ["rounds: 3\n", "a string", "a: [", "methods: [x]\n"])
def test_another_file_is_named(tmp_path, content):
    (tmp_path / "config.yaml").write_text(content)
    with pytest.raises(UserError, match=r"config\.yaml: not the configuration of a study"):
        study_status(tmp_path)


def configure(results, **changes):
    path = results / "config.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rounds": "many"}, "rounds: a whole number from 1 was expected, not 'many'"),
        ({"rounds": 0}, "rounds: a whole number from 1 was expected, not 0"),
        ({"rounds": True}, "rounds: a whole number from 1 was expected, not True"),
        ({"seeds": "all"}, "seeds: a whole number from 0 was expected, not 'a'"),
        (
            {"training": {"steps_per_round": "few"}},
            "training.steps_per_round: a whole number from 1 was expected, not 'few'",
        ),
        (
            {"methods": {"A": {"train": True, "training": {"steps_per_round": None}}}},
            "methods.A.training.steps_per_round: a whole number from 1 was expected, not None",
        ),
    ],
)
def test_a_number_of_the_study_that_is_none_is_named_with_its_key(results, changes, said):
    configure(results, **changes)
    with pytest.raises(UserError) as error:
        study_status(results)
    assert str(error.value) == f"{results / 'config.yaml'}: {said}"


DAMAGED = [
    ('{"rows": [{"step": 0', "not JSON ("),
    ("[]", "not a train log, which has the key 'rows'"),
    ("{}", "not a train log, which has the key 'rows'"),
    ('{"rows": 3}', "not the rows of a train log"),
    ('{"rows": [3]}', "not the rows of a train log"),
    ('{"rows": [{"elapsed_s": 1}, {"step": 1}]}', "row 2: elapsed_s: required, but not given"),
    ('{"rows": [{"elapsed_s": "1"}]}', "row 1: elapsed_s: a number was expected, not '1'"),
    (
        '{"rows": [{"elapsed_s": 1, "mean_reward": "x"}]}',
        "row 1: mean_reward: a number was expected, not 'x'",
    ),
]


@pytest.mark.parametrize(("text", "said"), DAMAGED)
def test_a_damaged_log_is_named(results, text, said):
    path = write(results / "rl/slow/seed_11/round_1/train_log.json", text)
    with pytest.raises(UserError) as error:
        study_status(results)
    assert str(error.value).startswith(f"{path}: {said}")


def test_damaged_rows_of_the_round_in_hand_are_named(results):
    path = write(results / "scratch/slow/seed_11/round_1/key/step_00000/rows.json", "[{")
    with pytest.raises(UserError) as error:
        study_status(results)
    assert str(error.value).startswith(f"{path}: not JSON (")


@pytest.mark.parametrize("of_text", [True, False])
def test_damaged_episodes_are_named(results, of_text):
    path = write(results / "eval/slow/seed_11/round_1/episodes.parquet", "PAR1 and no more")
    if not of_text:
        pd.DataFrame({"panel": ["test"]}).to_parquet(path)
    with pytest.raises(UserError) as error:
        study_status(results)
    assert str(error.value).startswith(f"{path}: damaged, or not an episodes file (")
    assert "\n" not in str(error.value)


def test_a_row_may_hold_its_seconds_alone(results):
    finish(results, "slow/seed_11", 1, [{"elapsed_s": 10}])
    assert cells(of(results, "slow", 11))[4:9] == [""] * 5


def test_the_command_ends_with_one_line_where_a_log_was_cut_off(results):
    write(results / "rl/slow/seed_11/round_1/train_log.json", '{"rows": [')
    done = monitor(results, "--once")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: ") and "train_log.json: not JSON (" in done.stderr


@pytest.mark.parametrize("text", ["-1", "0", "nan", "inf", "1e300", "soon"])
def test_a_pause_that_is_none_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="seconds above 0 and up to 86400"):
        pause(text)


def test_the_command_refuses_such_a_pause(results):
    assert pause("0.5") == 0.5
    done = monitor(results, "--every", "-1")
    assert done.returncode == 2 and "argument --every: seconds above 0" in done.stderr


def monitor(results, *arguments):
    command = [sys.executable, "-m", "hgrpo.cli.monitor", str(results), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_prints_a_line_a_run(results):
    finish(results, "slow/seed_11", 1, [row(0), row(1)])
    done = monitor(results)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == [
        *("arm", "seed", "round", "step", "reward", "success", "KL", "dead", "test"),
        *("last", "step", "time", "left"),
    ]
    assert lines[3].split()[:8] == [
        "slow",
        "11",
        "2/3",
        "waiting",
        "0.250",
        "50.0%",
        "0.0010",
        "3/16",
    ]
    assert lines[-1].startswith("1 of 12 rounds finished, ")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(4.4, "4 s"), (59.4, "59 s"), (61, "1 min"), (3599, "1 h 00 min"), (11_100, "3 h 05 min")],
)
def test_durations(seconds, shown):
    assert duration(seconds) == shown
