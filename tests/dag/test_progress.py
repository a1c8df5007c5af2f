"""While a run lasts, the terminal shows cautions of its own results, not of older ones."""

import os

import pytest

CAUTION = "caution: Most groups are dead: in round 1, flatGRPO"


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["-R", "sft"], False),  # the round begins after SFT, and overwrites its old result
        (["sft", "-R", "sft"], False),  # the run makes no round
        (["-R", "report"], True),  # the round is up to date
    ],
)
def test_only_results_of_this_run_are_cautioned_about(checkout, arguments, printed):
    checkout.edit("hgrpo/workflow/watch/terminal.py", "_EVERY_S = 20.0", "_EVERY_S = 0.02")
    (log,) = (checkout.root / "results/grid/logs").glob("rl*/**/*flatGRPO*11*1.log")
    log.write_text(f"{CAUTION}\n", encoding="utf-8")
    for path in (checkout.root / "results/grid").rglob("summary.json"):
        at = path.stat().st_mtime
        path.write_text("{}", encoding="utf-8")  # the stub's is no JSON
        os.utime(path, (at, at))
    done = checkout.snakemake(*arguments)
    assert done.returncode == 0, done.stderr
    assert (CAUTION in done.stderr) == printed
