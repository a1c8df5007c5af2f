"""Logs in TensorBoard's and W&B's own files, read back by their own readers."""

import json
import os
import subprocess
import sys

import pytest
from watched_study import Watched

from hgrpo.report.board import scalars

pytestmark = pytest.mark.slow
ROWS = [
    {"step": 0, "round": 1, "mean_reward": 0.25, "grad_norm": None, "dead_groups": 3},
    {"step": 1, "round": 1, "mean_reward": 0.5, "grad_norm": 1.5, "dead_groups": 2},
    {"step": 0, "round": 2, "mean_reward": 0.75, "grad_norm": 0.5, "dead_groups": 0},
]


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A study of one run, one round finished and the next begun."""
    monkeypatch.chdir(tmp_path)
    study = Watched(methods=["flatGRPO"])
    rows = [row | {"elapsed_s": 1.0} for row in ROWS]
    study.finish("flatGRPO seed 11 round 1", train_log={"rows": rows[:2]})
    second = study.jobs["flatGRPO seed 11 round 2"]
    begun = second.entry / "unfinished/key/step_00000/rows.json"
    begun.parent.mkdir(parents=True)
    begun.write_text(json.dumps(rows[2:]), encoding="utf-8")
    return study.results


def board(results, *arguments, **environment):
    command = [sys.executable, "-m", "hgrpo.cli.board", str(results), *map(str, arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        encoding="utf-8",
        env=os.environ | environment,
        check=False,
    )


@pytest.mark.extra("board")
def test_tensorboard_reads_every_row_once(results, tmp_path):
    from tensorboard.backend.event_processing import event_accumulator as reading

    for _ in range(2):  # a second call supersedes the first
        done = board(results, "--tensorboard", tmp_path / "boards")
        assert done.returncode == 0, done.stderr
        assert done.stdout == "3 steps sent\n"
    events = reading.EventAccumulator(str(tmp_path / "boards/smoke/flatGRPO/seed_11")).Reload()
    assert set(events.Tags()["scalars"]) == {"mean_reward", "grad_norm", "dead_groups", "elapsed_s"}
    assert [(e.step, e.value) for e in events.Scalars("mean_reward")] == [
        *((0, 0.25), (1, 0.5), (2, 0.75))
    ]
    assert [(e.step, e.value) for e in events.Scalars("grad_norm")] == [(1, 1.5), (2, 0.5)]


@pytest.mark.extra("board")
def test_wandb_without_a_network(results, tmp_path):
    done = board(results, "--wandb", "project", WANDB_MODE="offline", WANDB_SILENT="true")
    assert done.returncode == 0, done.stderr
    assert "3 steps sent" in done.stdout
    files = list(tmp_path.glob("wandb/offline-run-*/*.wandb"))
    assert len(files) == 1
    content = files[0].read_bytes()
    assert b"mean_reward" in content and b"smoke-flatGRPO-seed_11" in content


@pytest.mark.extra("board")
def test_wandb_without_a_key_is_one_line(results, tmp_path):
    home = {"HOME": str(tmp_path / "home"), "NETRC": str(tmp_path / "netrc")}
    done = board(results, "--wandb", "project", WANDB_MODE="online", WANDB_API_KEY="", **home)
    assert done.returncode == 2
    messages = [line for line in done.stderr.splitlines() if not line.startswith("wandb: ")]
    assert len(messages) == 1, done.stderr
    assert messages[0].startswith("error: --wandb: project: No API key configured")


def test_a_board_must_be_named(results):
    done = board(results)
    assert done.returncode == 2
    assert done.stderr == "error: pass --tensorboard FOLDER, --wandb PROJECT, or both\n"


def test_only_measurements_are_sent():
    row = {"step": 3, "round": 1, "a": 1, "b": 0.5, "c": None, "d": True, "e": "text"}
    assert scalars(row) == {"a": 1.0, "b": 0.5}
