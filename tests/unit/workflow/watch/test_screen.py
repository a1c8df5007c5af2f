"""The monitor's screen: what it says in each state, and that nothing is cut at any width."""

import io
import re
import time

import pytest
from hgrpo.report.run_status import RunStatus
from rich.console import Console
from watched_study import bar, begin, finish, jobs, record, row

from hgrpo.cli.monitor import look
from hgrpo.workflow.watch.jobs import StudyJob
from hgrpo.workflow.watch.screen import Seen, Work, now, screen
from hgrpo.workflow.watch.status import JobStatus, LogTail, State, duration


def lines(seen, width=120, height=50):
    console = Console(file=io.StringIO(), width=width)
    console.print(screen(seen, width, height))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def status(stage, state, share=None, heard=10.0, ended="", count="", arm="flatGRPO"):
    job = StudyJob(stage, arm, 11, 1, (), (), None, None)
    return JobStatus(job, state, LogTail(0.0, share, count, None, None, ended), heard)


TRAINS = status("rl_round", State.RUNNING, 0.45)
TESTS = status("evaluate", State.RUNNING, 0.17)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ([TRAINS, TESTS], "training 45%, evaluation 17%"),
        ([status("credit_fit", State.RUNNING, 0.5), status("rl_round", State.DONE)], "fit 50%"),
        ([status("evaluate", State.RUNNING)], "evaluation 0%"),
        (
            [status("rl_round", State.SILENT, 0.5, heard=720.0)],
            "training 50% (last heard 12 min ago)",
        ),
        (
            [status("rl_round", State.STOPPED, 0.5, ended="error: no")],
            "training 50% (failed 10 s ago)",
        ),
        (
            [status("evaluate", State.STOPPED, 0.5, ended="interrupted: again")],
            "evaluation 50% (interrupted 10 s ago)",
        ),
        ([status("rl_round", State.QUEUED), status("evaluate", State.NOT_STARTED)], "queued"),
        ([status("rl_round", State.NOT_STARTED)], "not started"),
        ([status("rl_round", State.DONE)], "done"),
    ],
)
def test_what_a_run_does_now(own, said):
    assert now(own) == said


def test_a_study_from_its_first_job_to_its_report(tmp_path):
    results = record(tmp_path / "grid")
    known = jobs(results)
    began = time.time() - 1000

    def seen():
        return lines(look(results, 0))

    text = seen()
    assert text[0] == "smoke: 1 of 18 jobs done, rounds 0/4, fits 0/1, evaluations 0/5"
    assert re.fullmatch(r"about \d+ (s|min) of work left; nothing is running", text[1])
    assert "assets        queued" in text and "sft           not started" in text
    for name in ("study_config", "assets", "expert", "base"):
        finish(known[name], began)
    begin(known["sft"], bar(35, "7/20", "02:10", "step"), time.time())
    assert "sft           running, step 7/20, 2 min left" in seen()
    assert re.fullmatch(r"about \d+ min of work left", seen()[1])
    finish(known["sft"], began)
    begin(known["flatGRPO seed 11 round 1"], bar(50, "16/32", "00:20", "traj"), time.time())
    begin(known["TurnRDV2 seed 11 round 1"], bar(25, "8/32", "00:40", "traj"), time.time())
    text = seen()
    words = r"about \d+ (s|min) of work left; with 2 jobs at a time, about \d+ (s|min)"
    assert re.fullmatch(words, text[1])
    table = [line.split() for line in text[10:13]]
    assert [words[0] for words in table] == ["flatGRPO", "SFTOnly", "TurnRDV2"]
    assert table[0][-2:] == ["training", "50%"] and table[1][-1] == "queued"
    finish(known["flatGRPO seed 11 round 1"], time.time())
    finish(known["flatGRPO seed 11 evaluation of round 1"], time.time())
    assert seen()[10].split() == [
        *("flatGRPO", "11", "2/2", "0.250", "50.0%", "0.0010", "3/16", "75.0%", "queued")
    ]
    played = bar(43, "10/24", "00:20", "game").replace("loss=0.5", "test=0.625")
    for number, said in ((1, "75.0%"), (2, "62.5%")):
        finish(known[f"flatGRPO seed 11 round {number}"], time.time() - 5)
        begin(known[f"flatGRPO seed 11 evaluation of round {number}"], played, time.time())
        assert seen()[10].split()[7] == said
    for job in known.values():
        finish(job, time.time())
    text = seen()
    assert text[0] == "smoke: 18 of 18 jobs done, rounds 4/4, fits 1/1, evaluations 5/5"
    assert text[-3:] == ["merge    done", "figures  done", "report   done"]


def busy(runs, arm="Progressive_alpha_0.5"):
    """A study whose every run trains and is evaluated."""
    names = [f"{arm}{number}" for number in range(runs)]
    own = [
        status(stage, State.RUNNING if stage == "evaluate" else State.SILENT, 0.45, 720.0, arm=name)
        for name in names
        for stage in ("rl_round", "evaluate")
    ]
    before = [
        JobStatus(StudyJob(stage, "", 0, 0, (), (), None, None), State.DONE)
        for stage in ("study_config", "assets", "expert", "base", "sft")
    ]
    after = [
        JobStatus(StudyJob(stage, "", 0, 0, (), (), None, None), State.NOT_STARTED)
        for stage in ("merge", "figures", "report")
    ]
    shown = [RunStatus(name, 11, 12, 10, [row(0)] * 3, 10, 3, test_success=1.0) for name in names]
    return Seen("bakeoff_plus", [*before, *own, *after], shown, Work(99_999, "at most"), 2)


@pytest.mark.parametrize(
    ("arm", "width"),
    [("flatGRPO", 60), *(("Progressive_alpha_0.5", width) for width in (80, 100, 120))],
)
def test_no_word_is_cut(arm, width):
    text = lines(busy(3, arm), width)
    assert max(map(len, text)) <= width
    assert "…" not in "".join(text)
    words = " ".join(text).split()
    for word in (f"{arm}2", "training", "evaluation", "100.0%", "11/12", "success"):
        assert word in words
    assert ("KL" in words, "test" in words) == (width >= 120, True)


def test_a_low_screen_shows_the_runs_at_work_and_counts_the_others():
    seen = busy(8)
    idle = [status("rl_round", State.QUEUED, arm=f"q{n}") for n in range(30)]
    ends = [status("rl_round", State.DONE, arm=f"d{n}") for n in range(5)]
    rest = [
        RunStatus(each.job.method, 11, 2, 2, [], 0, None, test_success=None)
        for each in (*ends, *idle)
    ]
    seen = Seen(seen.name, [*ends, *seen.jobs, *idle], [*rest, *seen.runs], seen.work, 2)
    text = lines(seen, 120, 40)
    assert len(text) <= 40
    assert sum("training" in line for line in text) == 8
    (counted,) = (line for line in text if line.startswith("and more runs: "))
    assert counted.endswith(" queued")
    assert "more runs" not in "".join(lines(seen, 120, 90))


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
