"""The log rows of runs: read from files as the rounds write them."""

import json
import os
from pathlib import Path

import pytest
from watched_study import row

from hgrpo.errors import UserError
from hgrpo.report.board import run_log, run_plans
from hgrpo.stages.paths import Job
from hgrpo.store.plan import MADE, STORE, Planned


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """A run of three rounds."""
    monkeypatch.chdir(tmp_path)
    rounds = []
    for number in (1, 2, 3):
        key = f"{number:016x}"
        folder = f"{STORE}/{key}/rl/slow/seed_11/round_{number}"
        rounds.append(Planned("rl_round", Job("slow", 11, number), key, folder, {}, {}))
    (plan,) = run_plans([Planned("sft", Job(), "k", "f", {}, {}), *rounds])
    return plan


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def finish(job, rows):
    log = write(Path(job.folder, "train_log.json"), json.dumps(rows))
    write(job.entry / MADE, "{}")
    return log


def test_before_anything_has_run_and_after_it(plan):
    first, *_ = plan.rounds
    assert run_log(plan) == ([], False)
    (first.entry / "unfinished/key").mkdir(parents=True)
    assert run_log(plan) == ([], False)
    for job in plan.rounds:
        finish(job, {"rows": [row(0), row(1)]})
    assert run_log(plan) == ([row(0), row(1)] * 3, True)


def test_a_round_in_hand_by_hand(plan):
    rows = [row(step, elapsed_s=20.0) for step in range(4)]
    first, second, _ = plan.rounds
    finish(first, {"rows": rows})
    newest = [row(0), row(1, mean_reward=0.75)]
    write(second.entry / "unfinished/key/step_00001/rows.json", json.dumps(newest))
    assert run_log(plan) == (rows + newest, False)
    # A folder of other settings, which the job is about to remove.
    older = write(second.entry / "unfinished/other/step_00003/rows.json", json.dumps(newest * 2))
    os.utime(older.parents[1], (1, 1))
    assert run_log(plan) == (rows + newest, False)


def test_when_an_early_round_is_played_again_later_ones_do_not_count(plan):
    for job in plan.rounds[1:]:
        finish(job, {"rows": [row(0), row(1)]})
    assert run_log(plan) == ([], False)


def test_a_damaged_log_is_named(plan):
    path = finish(plan.rounds[0], {})
    path.write_text('{"rows": [{"step": 0', encoding="utf-8")
    with pytest.raises(UserError) as error:
        run_log(plan)
    assert str(error.value).startswith(f"{path}: the file is damaged; expected JSON (")
