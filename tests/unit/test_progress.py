"""The progress file of a job: what bars write into it, and how a job ends in it."""

import json
import os
import socket

import pytest

from hgrpo import progress
from hgrpo.errors import UserError
from hgrpo.progress import Bar, print_caution, progress_file, read_progress, written_progress


@pytest.fixture
def log(tmp_path):
    return tmp_path / "logs/rl_round/flatGRPO.seed_11.round_1.log"


def test_without_a_job_a_bar_is_one_of_tqdm(capsys, tmp_path):
    with written_progress(None), Bar(total=4, desc="sft", unit="step", mininterval=0) as bar:
        bar.update(3)
    assert "sft:  75%" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_bar_of_a_job_draws_nothing_and_writes_its_file(capsys, log, monkeypatch):
    monkeypatch.setattr(progress, "_EVERY_S", 0.0)
    assert progress_file(log).name == "flatGRPO.seed_11.round_1.progress.json"
    with written_progress(log):
        begun = read_progress(log)
        assert (begun.host, begun.pid) == (socket.gethostname(), os.getpid())
        assert (begun.share, begun.unit, begun.ended) == (0.0, "", "") and begun.lives()
        with Bar(total=4, desc="sft", unit="step") as bar:
            bar.update(3)
            bar.set_postfix(loss="0.5", refresh=True)
            now = read_progress(log)
            assert (now.done, now.total, now.unit, now.share) == (3, 4, "step", 0.75)
            assert now.postfix == "loss=0.5" and 0 <= now.left_s < 10
            assert now.written >= now.started == begun.started
    ended = read_progress(log)
    assert ended.ended == progress.FINISHED and not ended.lives() and ended.postfix == "loss=0.5"
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert [path.name for path in log.parent.iterdir()] == [progress_file(log).name]


def test_writes_are_rare_but_the_last_state_of_a_bar_is_written(log, monkeypatch):
    monkeypatch.setattr(progress, "_EVERY_S", 100.0)
    with written_progress(log):
        with Bar(range(9), unit="game") as bar:
            for _ in bar:
                bar.set_postfix(test="0.3")
                assert read_progress(log).unit == ""
        assert (read_progress(log).done, read_progress(log).postfix) == (9, "test=0.3")


def test_the_time_left_counts_only_what_this_process_did(log, monkeypatch):
    monkeypatch.setattr(progress, "_EVERY_S", 0.0)
    with written_progress(log), Bar(total=100, initial=90, unit="step") as bar:
        bar.start_t -= 50
        bar.n = 95
        bar.refresh()
        assert read_progress(log).left_s == pytest.approx(50, abs=2)
    with written_progress(log), Bar(unit="step") as bar:  # without a total
        bar.update(5)
        bar.refresh()
        assert (read_progress(log).left_s, read_progress(log).share) == (None, 0.0)


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (UserError("no disk"), "error: no disk"),
        (ValueError("bad\nthing"), "ValueError: bad thing"),
        (KeyboardInterrupt(), progress.INTERRUPTED),
        (SystemExit(3), "error: a process of the job failed"),
    ],
)
def test_how_a_job_ends(log, error, ended):
    with pytest.raises(type(error)), written_progress(log):
        raise error
    assert read_progress(log).ended == ended


def test_of_several_processes_the_first_one_writes_and_its_error_stays(log, monkeypatch):
    with pytest.raises(SystemExit), written_progress(log):
        with pytest.raises(UserError), written_progress(log):
            raise UserError("no memory")
        monkeypatch.setenv("RANK", "1")
        with pytest.raises(UserError), written_progress(log):
            raise UserError("interrupted by the first process")
        raise SystemExit(2)
    assert read_progress(log).ended == "error: no memory"


def test_a_caution_is_printed_and_kept(log, capsys):
    print_caution("Most groups are dead: 90 %.")
    with written_progress(log):
        print_caution("The expert is poor.")
        print_caution("Another.")
    assert read_progress(log).cautions == ["The expert is poor.", "Another."]
    assert capsys.readouterr().out.count("caution: ") == 3


@pytest.mark.parametrize("text", ["", "[]"])
def test_a_missing_or_damaged_file_is_none(log, text):
    assert read_progress(log) is None
    progress_file(log).parent.mkdir(parents=True)
    progress_file(log).write_text(text, encoding="utf-8")
    assert read_progress(log) is None


def test_a_job_of_a_process_that_has_gone_does_not_live(log):
    with written_progress(log):
        content = json.loads(progress_file(log).read_text(encoding="utf-8"))
        for change, lives in (({}, True), ({"pid": 2**30}, False), ({"host": "x"}, True)):
            text = json.dumps(content | change)
            progress_file(log).write_text(text, encoding="utf-8")
            assert read_progress(log).lives() == lives
