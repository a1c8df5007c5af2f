"""The command line: every command of the original's README and sweeps, and every mistake."""

import re
import signal
import subprocess
import sys

import pandas as pd
import pytest
from small_digits import write_digits

from hgrpo.cli import sandbox
from hgrpo.command import run
from hgrpo.errors import UserError
from hgrpo.sandbox.rl.tasks import char_model
from hgrpo.sandbox.tasks import sequences

G8E4 = "--group_size 8 --inner_epochs 4"
NOISE = "--reward_noise 0.2 --reward_noise_mode false_positive_rare_token"
# What follows `python -m rl_sandbox.train` in the original.
COMMANDS = [
    "--method DG --delay 30",
    "--task mnist --method TPOFullAction",
    *[
        f"--task token_reversal --method {name} {G8E4}"
        for name in ("GRPO", "TPO", "TPOToken", "DAPOLite")
    ],
    "--task token_reversal --method FreshDG --delay 4 --replay_capacity 5",
    "--task chain_reversal --method SelfDistillDG",
    "--task chain_arithmetic --method DG --seq_len 3 --vocab_size 5",
    "--task format_answer --method DG --seq_len 3 --vocab_size 5",
    "--task lm_bandit --method DG --model_name char --batch_size 16 --lr 5e-5",
    "--sweep",
    "--task token_reversal --method DG --batch_size 96",
    *[
        f"--task token_reversal --method {name} --batch_size 96 {NOISE}"
        for name in ("DG", "UncertaintyDG", "FilteredDG", "RewardVarianceDG", "ASPO", "R2VPO")
    ],
    *[
        f"--task token_reversal --method FilteredDG {NOISE} --uncertainty_threshold {threshold}"
        for threshold in (0.2, 0.3)
    ],
    *[f"--task chain_reversal --method {name}" for name in ("CE", "SCOPELite")],
    "--task token_reversal --method DG --delay 4",
    *[
        f"--task token_reversal --method {name} --delay 4 --replay_capacity {capacity}"
        for name in ("ReplayDG", "FreshDG")
        for capacity in (5, 32)
    ],
    "--task token_reversal --method FreshDG --delay 4 --replay_capacity 32 --replay_age_decay 0.5",
    *[f"--task masked_reversal --method {name}" for name in ("CE", "DG", "DGToken")],
    "--task masked_reversal --method TEMPO --group_size 8",
    *[f"--task masked_reversal --method {name} {G8E4}" for name in ("TPOToken", "GRPOToken")],
    *[
        f"--task token_reversal --method {name} --entropy_diagnostics true"
        for name in ("DG", "DGEntropyGuard", "ASPO", "R2VPO")
    ],
    *[
        f"--task token_reversal --method {name} {G8E4} --entropy_diagnostics true"
        for name in ("GRPO", "TPO")
    ],
]
# Of the original's row, those columns that every run has.
COLUMNS = ["step", "loss", "seed", "method", "delay", "test_error", "entropy", "reward"]


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    return write_digits(tmp_path_factory.mktemp("digits") / "digits.npz")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_original_runs(command, digits, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(char_model, "_STEPS", 2)
    monkeypatch.setattr(sequences, "_MOST_INPUTS", 0)
    monkeypatch.setattr(sequences, "_DRAWN", 20)
    words = command.split()
    if "mnist" in words or "--task" not in words:
        words += ["--data", str(digits)]
    # As short as the original's smoke variants; a delayed batch is evaluated when it is old enough.
    steps = 1 + int(words[words.index("--delay") + 1]) if "--delay" in words else 2
    brief = ["--num_seeds", "1", "--num_steps", str(steps), "--eval_every", "1", "--verbose"]
    target = tmp_path / "rows.csv"
    words = [*words, "--batch_size", "16", *brief, "false", "--output", str(target)]
    sandbox.main(["rl", *words])
    rows = pd.read_csv(target)
    assert list(rows.columns[:8]) == COLUMNS
    assert rows["test_error"].between(0, 1).all() and rows["loss"].notna().any()
    assert capsys.readouterr().out == ""
    if "--sweep" in words:
        assert rows.groupby(["method", "delay"]).ngroups == 36


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("rl --bach_size 3", r"--bach_size: unknown; did you mean '--batch_size'\?"),
        ("rl --method TPX", "did you mean 'TPO'"),
        ("rl --task digits", "task: 'digits': there is no such one"),
        ("rl --verbose maybe", "true or false was expected, not 'maybe'"),
        ("rl --tpo_eta x", "--tpo_eta: invalid float value: 'x'"),
        ("rl --num_seeds 0", "--num_seeds: at least 1"),
        ("rl --task token_reversal --eta 0", "rule.eta: input should be greater than 0"),
        ("rl --task token_reversal --method TPO --batch_size 10", "no multiple of group_size 4"),
        ("rl --task token_reversal --rule eta", "KEY=VALUE was expected, not 'eta'"),
        ("rl --task token_reversal --rule cap=1", "DG has no 'cap'"),
        ("rl --task token_reversal --output .", "--output: . is a folder"),
        ("rl --task token_reversal --method PG --allow_degenerate false", "PG needs ratios"),
        (
            "rl --task token_reversal --output /dev/null/rows.csv",
            "--output: /dev/null: File exists|--output: /dev/null: Not a directory",
        ),
        ("rl_oracle --train_steps 0,-2", "numbers by comma were expected, not '0,-2'"),
        ("r", "invalid choice: 'r'"),
    ],
)
def test_a_mistake_takes_one_line_and_exits_with_2(command, text, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["sandbox", *command.split()])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        run(sandbox.main)
    said = capsys.readouterr().err.strip()
    assert stopped.value.code == 2 and said.startswith("error: ") and "\n" not in said
    assert re.search(text, said)
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_fails_keeps_the_file_of_an_earlier_one(tmp_path):
    target = tmp_path / "rows.csv"
    target.write_text("earlier")
    words = "rl --task token_reversal --seq_len 3 --num_steps 3 --num_seeds 1 --verbose false"
    with pytest.raises(UserError, match="not finite"):
        sandbox.main([*words.split(), "--lr", "1e30", "--output", str(target)])
    assert target.read_text() == "earlier" and list(tmp_path.iterdir()) == [target]


def test_flags_may_be_spelled_with_dashes_and_seeds_are_counted(tmp_path):
    target = tmp_path / "rows.csv"
    words = "rl --task=token_reversal --batch-size=8 --seq-len 2 --num-steps 1 --seed 7"
    words += f" --num-seeds 2 --verbose false --output {target}"
    sandbox.main(words.split())
    assert pd.read_csv(target)["seed"].tolist() == [7, 8, 7, 8]


def test_a_setting_without_a_flag_of_its_own(tmp_path):
    words = "rl --task token_reversal --method GRPO --seq_len 2 --num_steps 1 --num_seeds 1"
    rows = []
    for rule in (["norm=mean"], ["norm=std", "clip=null"]):
        target = tmp_path / "rows.csv"
        given = ["--rule", *rule, "--verbose", "false", "--output", str(target)]
        sandbox.main([*words.split(), *given])
        rows.append(pd.read_csv(target)["adv_abs_mean"][0])
    assert rows[0] < rows[1]


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        ("rl --task token_reversal --seq_len 2 --method GRPO --tpo_eta 5", "--tpo_eta: GRPO"),
        ("vpo --method MultiRLVR --set_score exact", "--set_score: MultiRLVR"),
        ("pedagogy --method StudentGRPO --reward_form product", "--reward_form: StudentGRPO"),
    ],
)
def test_a_flag_that_the_rule_does_not_read_is_noted(words, flag, tmp_path, capsys):
    brief = f"--num_steps 1 --num_seeds 1 --verbose false --output {tmp_path / 'rows.csv'}"
    sandbox.main([*words.split(), *brief.split()])
    assert f"note: {flag} does not read it" in capsys.readouterr().err


def test_an_interrupted_run_says_that_nothing_was_written(tmp_path):
    target = tmp_path / "rows.csv"
    words = ["rl", "--task", "token_reversal", "--num_steps", "100000", "--output", str(target)]
    command = [sys.executable, "-m", "hgrpo.cli.sandbox", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        said = ""
        while "/100000" not in said:  # The bar appears once training has begun.
            said += process.stderr.read(1)
        process.send_signal(signal.SIGINT)
        said += process.communicate()[1]
    assert process.returncode == 130
    # The bar's line may not have ended yet.
    assert "interrupted: nothing was written, because rows" in said.splitlines()[-1]
    assert not target.exists()


def test_degenerate_runs_are_noted(tmp_path, capsys):
    words = "rl --task token_reversal --method ASPO --seq_len 2 --num_steps 1 --num_seeds 1"
    sandbox.main([*words.split(), "--verbose", "false", "--output", str(tmp_path / "rows.csv")])
    said = capsys.readouterr()
    assert "note: ASPO needs ratios other than 1" in said.out + said.err


def test_the_oracle_study_writes_its_samples(tmp_path, capsys):
    target = tmp_path / "samples.csv"
    words = "rl_oracle --seq_len 2 --batch_size 12 --train_steps 0,2 --verbose false"
    sandbox.main([*words.split(), "--output", str(target)])
    rows = pd.read_csv(target)
    assert rows["step"].value_counts().to_dict() == {0: 12, 2: 12}
    assert capsys.readouterr().out.count("corr_delight_projection") == 2
