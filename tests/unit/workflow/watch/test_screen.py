"""The monitor's screen: its words in each state, and that nothing is cut at any width."""

import io
import re
import time

import pytest
from rich.console import Console
from watched_study import FIRST, Watched, bar, begin

from hgrpo.cli.monitor import look
from hgrpo.progress import FINISHED, INTERRUPTED, Progress
from hgrpo.stages.job import Job
from hgrpo.store.plan import Planned
from hgrpo.workflow.watch.screen import now, screen
from hgrpo.workflow.watch.status import JobStatus, State, duration

POSTFIX = "step=3, success=0.50, reward=0.250, KL=0.0010, dead=3/16"


def lines(shown, width=120):
    console = Console(file=io.StringIO(), width=width)
    console.print(shown)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def status(stage, state, share=0.0, ended="", arm="flatGRPO", seconds_ago=720.0, postfix=POSTFIX):
    job = Planned(stage, Job(arm, 11, 1), "", "", {}, {})
    at = time.time() - seconds_ago
    progress = Progress("node", 1, at, at, 100 * share, 100, "traj", None, postfix, ended=ended)
    return JobStatus(job, state, progress)


@pytest.mark.parametrize(
    ("jobs", "text"),
    [
        (
            [("rl_round", State.RUNNING, 0.45), ("evaluate", State.RUNNING, 0.17)],
            "training 45%, evaluation 17%",
        ),
        ([("credit_fit", State.RUNNING, 0.5), ("rl_round", State.DONE)], "fit 50%"),
        ([("rl_round", State.FAILED, 0, "error: no")], "training failed 12 min ago: no"),
        (
            [("evaluate", State.FAILED, 0, INTERRUPTED)],
            "evaluation interrupted 12 min ago",
        ),
        ([("rl_round", State.WAITING), ("rl_round", State.DONE)], "waiting"),
        ([("rl_round", State.DONE)], "done"),
    ],
)
def test_what_a_run_does_now(jobs, text):
    # Times are those of this moment, not of the collection of the tests.
    assert now([status(*job) for job in jobs]) == text


def test_a_study_from_its_first_job_to_its_report():
    study = Watched()
    known = study.jobs

    def seen():
        return lines(look(study.results, 50)[0])

    text = seen()
    assert text[0] == "smoke: 1 of 18 jobs done"
    assert re.fullmatch(r"about \d+ (s|min) of work left; nothing is running", text[1])
    assert "assets        waiting" in text and "sft           waiting" in text
    study.finish(*FIRST)
    begin(known["sft"], time.time(), **bar(7, 20, "step", 130.0))
    assert "sft           running, step 7/20, loss=0.5, 2 min left" in seen()
    assert re.fullmatch(r"about \d+ min of work left; 1 job is running", seen()[1])
    study.finish("sft")
    first = known["flatGRPO seed 11 round 1"]
    begin(first, time.time(), **bar(16, 32, "traj", 20.0) | {"postfix": POSTFIX})
    begin(known["TurnRDV2 seed 11 round 1"], time.time(), **bar(8, 32, "traj", 40.0))
    text = seen()
    words = r"about \d+ (s|min) of work left; with 2 jobs at a time, about \d+ (s|min)"
    assert re.fullmatch(words, text[1])
    rows = {line.split()[0]: line for line in text if line}
    assert rows["flatGRPO"].split()[1:3] == ["11", "0/2"]
    assert rows["flatGRPO"].endswith("training 50%") and POSTFIX in rows["flatGRPO"]
    assert rows["SFTOnly"].split() == ["SFTOnly", "all", "waiting"]
    study.finish(first.name)
    begin(first, time.time(), **bar(32, 32, "traj") | {"postfix": POSTFIX}, ended=FINISHED)
    tested = bar(10, 24, "game", 20.0) | {"postfix": "test=0.625"}
    begin(known["flatGRPO seed 11 evaluation of round 1"], time.time(), **tested)
    (row,) = (line for line in seen() if line.startswith("flatGRPO"))
    assert row.split()[2] == "1/2" and POSTFIX in row and "test=0.625" in row
    study.finish(*known)
    text = seen()
    assert text[0] == "smoke: 18 of 18 jobs done"
    assert {"merge         done", "figures       done", "report        done"} <= set(text)


def busy(runs, arm="Progressive_alpha_0.5"):
    """Jobs of a study whose every run trains and is evaluated."""
    return [
        status(stage, State.RUNNING, 0.45, arm=f"{arm}{number}")
        for number in range(runs)
        for stage in ("rl_round", "evaluate")
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_word_is_cut(width):
    text = lines(screen("bakeoff_plus", busy(3, "flat"), (99_999, "at most "), 50), width)
    assert max(map(len, text)) <= width
    assert "…" not in "".join(text)
    words = " ".join(text).split()
    left = "at most 27 h 47 min of work left; with 6 jobs at a time, at most 4 h 38 min"
    assert left in " ".join(words)
    for word in ("flat2", "training", "evaluation", "step=3,", "dead=3/16"):
        assert word in words


def test_a_low_screen_shows_the_runs_at_work_first():
    idle = [status("rl_round", State.WAITING, arm=f"q{n}", postfix="") for n in range(30)]
    both = [*idle, *busy(3, "flat")]

    def arms(height):
        text = lines(screen("x", both, (1.0, ""), height))
        return [line.split()[0] for line in text if line and line.split()[0][:1] in "qf"]

    assert arms(100)[0] == "q0"
    assert arms(30)[:4] == ["flat0", "flat1", "flat2", "q0"]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (4.4, "4 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (61, "1 min"),
        (3599, "1 h 00 min"),
        (11_100, "3 h 05 min"),
    ],
)
def test_durations(seconds, shown):
    assert duration(seconds) == shown
