"""What the end of a job's log says: real bars of tqdm, and last words."""

import pytest
from tqdm import tqdm

from hgrpo.command import run
from hgrpo.errors import UserError
from hgrpo.workflow.watch.status import read_tail


@pytest.mark.parametrize(
    ("done", "total", "seconds", "unit", "share", "count", "left"),
    [
        (0, 20, 0.0, "step", 0.0, "step 0/20", None),
        (7, 20, 21.0, "step", 0.35, "step 7/20", 39),
        (7, 20, 2.1, "game", 0.35, "game 7/20", 3),
        (1, 10, 600.0, "traj", 0.1, "traj 1/10", 5400),
        (20, 20, 40.0, "epoch", 1.0, "epoch 20/20", 0),
    ],
)
def test_a_bar(tmp_path, done, total, seconds, unit, share, count, left):
    bar = tqdm.format_meter(done, total, seconds, prefix="sft", unit=unit, postfix="loss=0.5")
    log = tmp_path / "sft.log"
    log.write_text(
        f"a warning\n\rsft:   0%|          | 0/{total} [00:00<?, ?step/s]\r{bar}", encoding="utf-8"
    )
    tail = read_tail(log)
    assert (tail.share, tail.count, tail.left_s) == (share, count, left)
    assert tail.ended == "" and tail.written == log.stat().st_mtime


def test_what_tqdm_writes_into_a_file_is_read(tmp_path):
    log = tmp_path / "x.log"
    with (
        log.open("w", encoding="utf-8") as file,
        tqdm(total=4, unit="game", file=file, mininterval=0) as bar,
    ):
        bar.update(3)
        assert (read_tail(log).share, read_tail(log).count) == (0.75, "game 3/4")


@pytest.mark.parametrize(
    ("postfix", "test"), [("", None), ("loss=0.5", None), ("test=0.324", 0.324)]
)
def test_the_test_success_of_an_evaluation(tmp_path, postfix, test):
    log = tmp_path / "x.log"
    with (
        log.open("w", encoding="utf-8") as file,
        tqdm(total=9, unit="game", file=file, mininterval=9) as bar,
    ):
        bar.update(3)
        bar.set_postfix_str(postfix)
        bar.update(3)
        assert (read_tail(log).test, read_tail(log).count) == (test, "game 3/9")


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ("\rsft: 1%|# | 1/9 [00:01<00:08, 1.0s/step]\nerror: no disk\n", "error: no disk"),
        ("ValueError: bad\n", "ValueError: bad"),
        ("torch.cuda.OutOfMemoryError: CUDA\n", "torch.cuda.OutOfMemoryError: CUDA"),
        ("error: of an attempt\nnow it goes on\n", ""),
        ("sft: 20 steps, validation loss 0.1\n", ""),
        ("", ""),
    ],
)
def test_the_last_words(tmp_path, text, ended):
    (tmp_path / "x.log").write_text(text, encoding="utf-8")
    assert read_tail(tmp_path / "x.log").ended == ended


@pytest.mark.parametrize("error", [KeyboardInterrupt(), UserError("no"), OSError(28, "full")])
def test_what_a_command_says_when_it_ends_early_counts_as_last_words(tmp_path, capsys, error):
    def fail():
        raise error

    with pytest.raises(SystemExit):
        run(fail)
    (tmp_path / "x.log").write_text(capsys.readouterr().err, encoding="utf-8")
    assert read_tail(tmp_path / "x.log").ended


def test_a_long_log_and_no_log(tmp_path):
    assert read_tail(tmp_path / "none.log") is None
    log = tmp_path / "x.log"
    log.write_text("é" * 100_000 + "\rx: 5%|# | 1/20 [00:01<00:19, 1.0s/step]", encoding="utf-8")
    assert read_tail(log).count == "step 1/20"
