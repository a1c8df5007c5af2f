"""The last line of an interrupted run says what was kept."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

# Stands for a round that has saved three steps and goes on until it is interrupted.
ROUND = """#!{python} -IS
import sys, time
from pathlib import Path
step = Path(sys.argv[sys.argv.index("--scratch") + 1], "key", "step_00002")
step.mkdir(parents=True, exist_ok=True)
(step / "begun").touch()
try:
    end = time.monotonic() + 60
    while time.monotonic() < end and not Path("go").exists():
        time.sleep(0.1)
except KeyboardInterrupt:
    print("interrupted: run the same command again; finished jobs and steps are kept")
    sys.exit(130)
print("error: nobody interrupted the round")
sys.exit(2)
"""


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_what_it_kept(checkout, by):
    stub = checkout.root / "round/python"
    stub.parent.mkdir()
    stub.write_text(ROUND.format(python=sys.executable), encoding="utf-8")
    stub.chmod(0o755)
    checkout.edit(
        "Snakefile", "\nshell.prefix(", f"\nshell.prefix('export PATH={stub.parent}:$PATH; ')\n# "
    )
    (checkout.root / "results/grid/rl/flatGRPO/seed_23/round_2/summary.json").unlink()
    begun = checkout.root / "results/grid/scratch/flatGRPO/seed_23/round_2/key/step_00002/begun"
    command = [sys.executable, "-m", "snakemake", "--config", "study=grid"]
    with subprocess.Popen(
        command,
        cwd=checkout.root,
        env=os.environ | {"PYTHONPATH": str(checkout.root)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
        # Whoever runs the tests in the background of a shell ignores Ctrl-C, and so would this run.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    ) as run:
        while not begun.exists() and run.poll() is None:
            time.sleep(0.1)
        # Ctrl-C reaches every process of the terminal; others ask snakemake alone to end, and then
        # it waits for its jobs.
        if by is signal.SIGINT:
            os.killpg(run.pid, by)
        else:
            os.kill(run.pid, by)
            while "Will exit after finishing" not in run.stderr.readline():
                assert run.poll() is None
            (checkout.root / "go").touch()
        said = run.communicate(timeout=60)[1]
    assert run.returncode != 0
    if by is signal.SIGINT:
        # A job's settings, thousands of characters, stay out of the message about it.
        assert "python -m hgrpo.cli.rl_round --config '{...}' --" in said
    assert said.splitlines()[-1] == (
        "interrupted: kept 20 of 25 jobs and the finished steps of others; "
        "the same command goes on from there"
    )
