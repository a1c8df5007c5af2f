"""vpo and pedagogy on the command line: the original's README, the arms beyond it, mistakes."""

import re
import subprocess
import sys

import pandas as pd
import pytest

from hgrpo.cli import sandbox
from hgrpo.command import run

SETS = "step loss reward gold_set_reward adv_abs_mean ratio_mean mean_scalar_reward best_at_1"
SETS += " best_at_3 best_at_9 pool_diversity_l1 seed method task"
STUDENT = "step test_error reward entropy seed method task"
TEACHER = STUDENT + " task_reward avg_student_surprisal teacher_loss teacher_reward"
TEACHER += " teacher_adv_abs_mean teacher_ratio_mean teacher_mixed_group_rate teacher_entropy"
TEACHER += " teacher_sample_task_reward teacher_test_error teacher_reward_eval"
LESSON = TEACHER + " pedagogy_reward learnability spike_penalty avg_surprise_gap max_surprise_gap"
LESSON += " assim_loss assim_gate_mean assim_logp_mean"
GRPO = STUDENT + " student_loss student_reward student_adv_abs_mean student_ratio_mean"
GRPO += " student_mixed_group_rate"
SMOKE = "--num_seeds 1 --num_steps 2 --eval_every 1 --batch_size 8 --group_size 4"
# What follows `python -m vpo_sandbox.train` or `pedagogy_sandbox.train` in the original's README
# follows `vpo` or `pedagogy` here; with the columns of the original's row.
README = [
    (
        "vpo --method VPOGRPO --batch_size 128 --group_size 8 --num_candidates 3 --num_steps 500 "
        "--eval_every 20 --num_seeds 3",
        SETS,
    ),
    ("vpo --method ScalarGRPO --num_candidates 1 --batch_size 128 --group_size 8", SETS),
    ("vpo --method MultiRLVR --num_candidates 3 --batch_size 128 --group_size 8", SETS),
    (f"vpo --method VPOGRPO {SMOKE} --inner_epochs 1", SETS),
    (
        "pedagogy --method PedagogicalRL --batch_size 96 --group_size 8 --num_steps 300 "
        "--eval_every 20 --num_seeds 3",
        LESSON,
    ),
    ("pedagogy --method StudentGRPO", GRPO),
    ("pedagogy --method TeacherRL", TEACHER + " teacher_additive_reward sft_loss"),
    (f"pedagogy --method PedagogicalRL {SMOKE}", LESSON),
]
MORE = [
    ("vpo --set_score exact --slot_credit marginal --compat reference", SETS),
    ("vpo --slot_credit marginal --num_weight_samples 3", SETS),
    *[
        (f"pedagogy --reward_form {form} --penalty {penalty} --imitation {imitation}", TEACHER)
        for form in ("product", "additive")
        for penalty in ("spike", "mean")
        for imitation in ("gated", "plain")
    ],
    ("pedagogy --imitated correct --content_vocab_size 11 --answer_len 2", LESSON),
]


@pytest.mark.parametrize(
    ("command", "columns"), README + MORE, ids=[command for command, _ in README + MORE]
)
def test_a_command_runs_and_writes_the_columns_of_the_original(command, columns, tmp_path, capsys):
    target = tmp_path / "rows.csv"
    # Later flags win, so that every command is as short as the original's smoke variants.
    words = [*command.split(), *SMOKE.split(), "--verbose", "false", "--output", str(target)]
    sandbox.main(words)
    rows = pd.read_csv(target)
    assert rows["step"].tolist() == [0, 1, 2]
    assert set(columns.split()) - set(rows.columns) == set()
    assert rows[columns.split()].iloc[:2].notna().all(axis=None)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (
            "vpo --num_candidate 3",
            r"--num_candidate: no such option; did you mean",
        ),
        ("vpo --method ScalarGRPO", "vpo: ScalarGRPO needs sets of one answer: num_candidates 1"),
        ("vpo --set_score mean", "rule.score: input should be"),
        ("vpo --clip_epsilon 0", "vpo: rule.clip: "),
        ("vpo --num_seeds 0", "num_seeds: input should be"),
        ("vpo --output .", "--output: . is a folder"),
        ("vpo --inner_epochs 1 --allow_degenerate false", "VPOGRPO needs ratios other than 1"),
        ("pedagogy --method Pedagogical", "did you mean 'PedagogicalRL'"),
        ("pedagogy --spike_beta 0", "pedagogy: rule.beta: "),
        ("pedagogy --penalty mean --spike_beta 2", "beta: 2.0 is read only with penalty spike"),
        ("pedagogy --verbose maybe", "verbose: input should be a valid boolean"),
        ("pedagogi", "no such piece; did you mean 'pedagogy'"),
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


def test_the_closing_line_tells_the_headline_and_help_the_defaults(tmp_path, capsys):
    target = tmp_path / "rows.csv"
    sandbox.main(["vpo", *SMOKE.split(), "--output", str(target)])
    said = capsys.readouterr()
    assert re.match(rf"{re.escape(str(target))}: 3 rows; last set_score 0\.\d{{4}}\n", said.out)
    assert "note: VPOGRPO needs" not in said.err
    with pytest.raises(SystemExit):
        sandbox.main(["pedagogy", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "teacher learns (default: 1)" in shown and "cannot act (default: True)" in shown
    assert "--gate_kappa str PedagogicalRL: gated: steepness of the gate" in shown


def test_the_commands_load_without_torch(project):
    code = "import sys, hgrpo.cli.sandbox;"
    done = subprocess.run(
        [sys.executable, "-c", f"{code} print('torch' in sys.modules)"],
        cwd=project,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stdout.strip() == "False"
