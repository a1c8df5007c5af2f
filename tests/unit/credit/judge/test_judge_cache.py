"""The cache of judgements: its key, and parallel jobs."""

import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from judge_cases import failures

from hgrpo.credit.judge.cache import Database, Question
from hgrpo.credit.judge.protocol import CallError, Judgement
from hgrpo.errors import UserError

PLAYED = failures(1)[0]
ASKED = Question("alfworld", "trajectory", "1", "http://host/v1", "model", 0.0, (PLAYED,))
ANSWER = Judgement([[1.0, 2.5, 10.0, 0.0]], "model-2024")

# Each process stores answers to all questions in its own order, with scores that name the process.
HAMMER = """
import random, sys
from pathlib import Path
from judge_cases import failures
from hgrpo.credit.judge.cache import Database, Question
from hgrpo.credit.judge.protocol import CallError, Judgement
number, path = int(sys.argv[1]), Path(sys.argv[2])
sys.stdin.readline()
cache = Database(path)
played = failures(150)
random.Random(number).shuffle(played)
for one in played:
    question = Question("alfworld", "trajectory", "1", "http://host/v1", "model", 0.0, (one,))
    stored = cache.put(question, Judgement([[float(number)] * 4], f"process {number}"))
    assert stored == cache.get(question)
    assert stored.scores == [[float(stored.answered_by.split()[1])] * 4]
print("done")
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "judge.sqlite"


def rows(path):
    with sqlite3.connect(path) as database:
        return database.execute("SELECT * FROM answers").fetchall()


def test_what_was_put_is_there_for_the_next_process(path):
    cache = Database(path)
    assert cache.get(ASKED) is None
    assert cache.put(ASKED, ANSWER) == ANSWER
    assert Database(path).get(ASKED) == ANSWER
    (mode,) = sqlite3.connect(path).execute("PRAGMA journal_mode").fetchone()
    assert mode == "wal"


@pytest.mark.parametrize("scores", [[[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0, float("nan")]]])
def test_a_wrong_or_partial_judgement_is_never_stored(path, scores):
    cache = Database(path)
    with pytest.raises(CallError):
        cache.put(ASKED, Judgement(scores, "model"))
    assert rows(path) == []


def changed_turn(**changes):
    turns = list(PLAYED.turns)
    turns[1] = replace(turns[1], **changes)
    return replace(PLAYED, turns=turns)


@pytest.mark.parametrize(
    "other",
    [
        replace(ASKED, environment="webshop"),
        replace(ASKED, variant="group"),
        replace(ASKED, version="2"),
        replace(ASKED, endpoint="http://host:8000/v1"),
        replace(ASKED, model="model-2"),
        replace(ASKED, temperature=0.5),
        replace(ASKED, trajectories=(PLAYED, PLAYED)),
        replace(ASKED, trajectories=(replace(PLAYED, goal="put a mug in shelf"),)),
        replace(ASKED, trajectories=(replace(PLAYED, success=True),)),
        replace(ASKED, trajectories=(replace(PLAYED, truncated=False),)),
        replace(ASKED, trajectories=(changed_turn(observation="x"),)),
        replace(ASKED, trajectories=(changed_turn(action="x"),)),
        replace(ASKED, trajectories=(changed_turn(env_reward=0.5),)),
    ],
)
def test_all_that_a_judgement_depends_on_is_in_its_key(other):
    assert other.key != ASKED.key


def test_what_it_does_not_depend_on_is_not():
    other = replace(PLAYED, rollout=7, token_ids=[1, 2])
    assert replace(ASKED, trajectories=(other,), temperature=0).key == ASKED.key
    assert (
        replace(ASKED, trajectories=(changed_turn(credit=1.0, logprobs=[-0.5]),)).key == ASKED.key
    )


def test_processes_that_hammer_a_new_cache_lose_nothing(project, path):
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", HAMMER, str(number), str(path)],
            cwd=project / "tests",
            env={"PYTHONPATH": f"{project}:{project / 'tests'}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        for number in range(1, 5)
    ]
    # All start at once, so that several try to create the file at the same time.
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        out, err = worker.communicate(timeout=120)
        assert (worker.returncode, out) == (0, "done\n"), err
    assert len(rows(path)) == 150
    cache = Database(path)
    assert all(cache.get(replace(ASKED, trajectories=(p,))) for p in failures(150))


def test_a_file_that_another_job_is_writing_is_waited_for(path):
    path.parent.mkdir()
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE unrelated (x)")
    other.execute("BEGIN IMMEDIATE")  # SQLite then says "locked" at once, despite the time-out
    threading.Timer(0.3, lambda: other.execute("COMMIT")).start()
    assert Database(path).put(ASKED, ANSWER) == ANSWER


def test_a_file_that_is_no_cache_is_named(path):
    path.parent.mkdir()
    path.write_text("not a database, but long enough to be looked at " * 20, encoding="utf-8")
    with pytest.raises(UserError, match=f"{path}: cannot use the judge's cache"):
        Database(path)
