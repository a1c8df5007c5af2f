"""`python -m hgrpo.cli.monitor`: before the first job, once, and until the report."""

import os
import pty
import select
import subprocess
import sys

import pytest
from watched_study import Watched

from hgrpo.cli.monitor import main
from hgrpo.errors import UserError


def monitor(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["monitor", *map(str, arguments)])
    main()


def test_once_before_the_first_job_is_one_clear_line(monkeypatch, tmp_path):
    with pytest.raises(UserError, match="config.yaml: no such file; run the study first"):
        monitor(monkeypatch, tmp_path / "results/bakeoff", "--once")


def test_once_prints_the_screen(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monitor(monkeypatch, Watched().results, "--once")
    text = capsys.readouterr().out
    assert text.startswith("smoke: 1 of 18 jobs done") and "rl_round" in text


def test_in_a_terminal_it_waits_for_the_study_and_stays_until_the_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "hgrpo.cli.monitor", "results/smoke", "--every", "0.1"]
    size = {"COLUMNS": "80", "LINES": "40", "TERM": "xterm"}
    ends = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    with subprocess.Popen(command, cwd=tmp_path, env=os.environ | size, **ends) as process:
        os.close(theirs)
        read_until(ours, "first job writes")
        study = Watched()
        read_until(ours, "smoke: 1 of 18 jobs done")
        study.finish(*study.jobs, findings="No arm is better. report.html")
        text = read_until(ours, "No arm is better. report.html")
        assert "smoke: 18 of 18 jobs done" in text
        assert process.wait(60) == 0
    os.close(ours)


def read_until(terminal, expected):
    """Output of a terminal up to a text; an end of the output raises OSError."""
    text = ""
    while expected not in text:
        assert select.select([terminal], [], [], 60)[0], text
        text += os.read(terminal, 4096).decode(errors="replace")
    return text
