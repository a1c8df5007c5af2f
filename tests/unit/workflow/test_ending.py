"""What a run says last, and that a study has one run at a time."""

import os
import signal
import subprocess
import sys
import time

import pytest
from places import PROJECT

from hgrpo.errors import UserError
from hgrpo.workflow import run
from hgrpo.workflow.ending import failure_lines, finding, page_lines
from hgrpo.workflow.run import remove_empty_scratch
from hgrpo.workflow.study_lock import hold_study


def test_each_failed_job_is_named_with_its_error(tmp_path):
    texts = {
        "assets": "assets: 3game\nerror: games: no such folder\n",
        "sft": 'Traceback:\n  File "x"\nValueError: bad\n',
        "base": "",
        "evaluate": "error: of an earlier run\n",
    }
    logs = {rule: tmp_path / f"{rule}.log" for rule in (*texts, "report")}
    for rule, text in texts.items():
        logs[rule].write_text(text, encoding="utf-8")
    os.utime(logs["evaluate"], (1e9, 1e9))
    assert failure_lines(logs.items(), began=1e9 + 1) == [
        f"error: assets: games: no such folder\n       (log: {logs['assets']})",
        f"error: sft: ValueError: bad\n       (log: {logs['sft']})",
        "error: base: it ended without a message, as a killed job does\n"
        f"       (log: {logs['base']})",
    ]
    assert failure_lines([], 0) == []


INTERRUPTED_JOBS = {
    "a finished job's last words": "base: 470,000 parameters, vocabulary 512\n",
    "Python ended before it could say more": "Traceback:\n  File x\nKeyboardInterrupt\n",
    "killed": "",
    "an error that it got over": "error: no server\ninterrupted: run the same command again\n",
}


@pytest.mark.parametrize("text", INTERRUPTED_JOBS.values(), ids=INTERRUPTED_JOBS)
def test_an_interrupt_does_not_make_a_failure_of_its_jobs(tmp_path, text):
    log = tmp_path / "base.log"
    log.write_text(text, encoding="utf-8")
    assert failure_lines([("base", log)], 0, interrupted=True) == []
    assert failure_lines([("base", log)], 0) != []
    log.write_text("error: no memory\n", encoding="utf-8")
    (line,) = failure_lines([("base", log)], 0, interrupted=True)
    assert line.startswith("error: base: no memory")


def test_an_interrupt_is_recorded_even_if_it_is_swallowed(monkeypatch):
    monkeypatch.setattr(run, "_INTERRUPTS", [])
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    before_term = signal.getsignal(signal.SIGTERM)
    try:
        run.note_interrupts()
        assert not run._INTERRUPTS
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        assert run._INTERRUPTS == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, before_term)


def test_the_finding_is_the_last_line_of_the_reports_log(tmp_path):
    assert finding(tmp_path) == ""
    (tmp_path / "logs/report").mkdir(parents=True)
    (tmp_path / "logs/report/report.log").write_text(
        "warning\nNo arm differs. r.html\n", encoding="utf-8"
    )
    assert finding(tmp_path) == ""
    (tmp_path / "report").mkdir()
    (tmp_path / "report/report.html").touch()
    assert finding(tmp_path) == "No arm differs. r.html"


@pytest.mark.parametrize(
    ("stages", "environment", "said"),
    [
        ({"report", "figures", "rl_round"}, {}, ["report says r.html"]),
        # `make` prints the finding below the times of the run.
        ({"report", "figures"}, {"HGRPO_FINDING": "last"}, []),
        ({"rl_round", "viewer"}, {}, ["viewer says v.html"]),
        ({"report", "paper"}, {"HGRPO_FINDING": "last"}, ["paper says p"]),
        (
            {"report", "viewer", "paper"},
            {},
            ["viewer says v.html", "paper says p", "report says r.html"],
        ),
        ({"figures", "credit_agreement"}, {}, ["figures says f"]),
        ({"rl_round"}, {}, []),
    ],
)
def test_a_run_says_last_where_its_pages_are(tmp_path, stages, environment, said):
    for stage, page in {
        "report": "r.html",
        "viewer": "v.html",
        "paper": "p",
        "figures": "f",
    }.items():
        (tmp_path / "logs" / stage).mkdir(parents=True)
        (tmp_path / "logs" / stage / f"{stage}.log").write_text(
            f"more\n{stage} says {page}\n", encoding="utf-8"
        )
    (tmp_path / "report").mkdir()
    (tmp_path / "report/report.html").touch()
    assert page_lines(stages, tmp_path, environment) == said


def test_a_second_run_of_a_study_is_refused(tmp_path):
    held = hold_study(tmp_path / "s")
    with pytest.raises(UserError, match="s: another snakemake is running this study$"):
        hold_study(tmp_path / "s")
    hold_study(tmp_path / "other")
    held.close()
    hold_study(tmp_path / "s").close()


def test_the_command_behind_make_unlock_refuses_while_a_run_goes_on(tmp_path):
    words = [sys.executable, "-m", "hgrpo.workflow.study_lock", str(tmp_path / "s")]
    held = hold_study(tmp_path / "s")
    done = subprocess.run(words, capture_output=True, encoding="utf-8")
    assert done.returncode == 2
    assert done.stderr.endswith("s: another snakemake is running this study\n")
    held.close()
    assert subprocess.run(words).returncode == 0


def test_make_unlock_names_the_jobs_that_a_killed_run_left_in_this_folder(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    words = [sys.executable, "-m", "hgrpo.workflow.study_lock", "results/s"]
    own = ["hgrpo.cli.rl_round", "--out", "results/s/rl/flatGRPO/seed_11/round_1"]
    code = "print('begun', flush=True); import time; time.sleep(60)"

    def unlock(where):
        env = os.environ | {"PYTHONPATH": str(PROJECT)}
        return subprocess.run(words, cwd=where, env=env, capture_output=True, encoding="utf-8")

    job = [sys.executable, "-c", code, *own]
    with subprocess.Popen(job, cwd=tmp_path, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout.readline() == "begun\n"
        done = unlock(tmp_path)
        assert done.returncode == 2
        assert done.stderr == (
            "error: results/s: jobs of a killed snakemake are still running; wait until they have "
            f"ended, or end them with `kill {process.pid}`\n"
        )
        # A job of the same study in another folder is no concern of this one.
        assert unlock(other).returncode == 0
        process.kill()
    assert unlock(tmp_path).returncode == 0


def test_a_killed_run_leaves_no_lock(tmp_path):
    code = (
        "import sys, time; from pathlib import Path\n"
        "from hgrpo.workflow.study_lock import hold_study\n"
        "held = hold_study(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "s")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(UserError):
            hold_study(tmp_path / "s")
        os.kill(process.pid, signal.SIGKILL)
    hold_study(tmp_path / "s").close()


def test_scratch_folders_without_a_step_go_and_others_stay(tmp_path):
    scratch = tmp_path / "scratch"
    for folder in ("sft", "flatGRPO/seed_11/round_1", "flatGRPO/seed_11/round_2"):
        (scratch / folder).mkdir(parents=True)
        (scratch / folder / "lock").write_text("7\n", encoding="utf-8")
    kept = scratch / "flatGRPO/seed_11/round_2/key/step_00000"
    kept.mkdir(parents=True)
    remove_empty_scratch(tmp_path)
    files = [path.relative_to(scratch).as_posix() for path in scratch.rglob("lock")]
    assert files == ["flatGRPO/seed_11/round_2/lock"] and kept.is_dir()
    assert not (scratch / "sft").exists()
    kept.rmdir()
    kept.parent.rmdir()
    remove_empty_scratch(tmp_path)
    assert not scratch.exists()
    remove_empty_scratch(tmp_path)
