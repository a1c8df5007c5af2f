"""The command line: every command of the original's README and sweeps, and every mistake."""

import re
import signal
import subprocess
import sys

import pandas as pd
import pytest
import torch
from small_digits import write_digits

from hgrpo.cli import sandbox
from hgrpo.command import run
from hgrpo.errors import UserError
from hgrpo.sandbox.old_flags import flags_of
from hgrpo.sandbox.rl.settings import RULES
from hgrpo.sandbox.rl.tasks import char_model
from hgrpo.sandbox.single_runs import read_runs
from hgrpo.sandbox.tasks import sequences

G8E4 = "--group_size 8 --inner_epochs 4"
NOISE = "--reward_noise 0.2 --reward_noise_mode false_positive_rare_token"
BUDGET = "--batch_size 96 --num_steps 300 --eval_every 20 --num_seeds 3"
LONGER = "--batch_size 96 --num_steps 1500 --eval_every 50 --num_seeds 3"
# What follows `python -m rl_sandbox.train` in the original follows `rl` here.
README = [
    "rl --task token_reversal --method TPO --batch_size 96 --group_size 8 --inner_epochs 4 "
    "--num_steps 300 --eval_every 20 --num_seeds 3",
    "rl --task token_reversal --method TPO --batch_size 16 --group_size 8 --inner_epochs 4 "
    "--num_steps 2 --eval_every 1 --num_seeds 1 --verbose false",
    "rl --method DG --delay 30",
    "rl --task mnist --method TPOFullAction",
    *[
        f"rl --task token_reversal --method {name} {G8E4}"
        for name in ("GRPO", "TPO", "TPOToken", "DAPOLite")
    ],
    "rl --task token_reversal --method FreshDG --delay 4 --replay_capacity 5",
    "rl --task chain_reversal --method SelfDistillDG",
    "rl --task chain_arithmetic --method DG --seq_len 3 --vocab_size 5",
    "rl --task format_answer --method DG --seq_len 3 --vocab_size 5",
    "rl --task lm_bandit --method DG --model_name char --batch_size 16 --lr 5e-5",
    "rl --sweep",
]
SWEEPS = [
    f"rl --task token_reversal --method DG {BUDGET}",
    *[f"rl --task token_reversal --method {name} {BUDGET} {G8E4}" for name in ("GRPO", "TPO")],
    *[
        f"rl --task token_reversal --method {name} {BUDGET} {NOISE}"
        for name in ("DG", "UncertaintyDG", "FilteredDG", "RewardVarianceDG", "ASPO", "R2VPO")
    ],
    *[
        f"rl --task token_reversal --method FilteredDG {BUDGET} {NOISE} "
        f"--uncertainty_threshold {threshold}"
        for threshold in (0.2, 0.3)
    ],
    *[
        f"rl --task chain_reversal --method {name} {LONGER}"
        for name in ("CE", "SelfDistillDG", "SCOPELite")
    ],
    f"rl --task token_reversal --method DG {BUDGET} --delay 4",
    *[
        f"rl --task token_reversal --method {name} {BUDGET} --delay 4 --replay_capacity {capacity}"
        for name in ("ReplayDG", "FreshDG")
        for capacity in (5, 32)
    ],
    f"rl --task token_reversal --method FreshDG {BUDGET} --delay 4 --replay_capacity 32 "
    "--replay_age_decay 0.5",
    *[f"rl --task masked_reversal --method {name} {BUDGET}" for name in ("CE", "DG", "DGToken")],
    f"rl --task masked_reversal --method TEMPO {BUDGET} --group_size 8",
    *[
        f"rl --task masked_reversal --method {name} {BUDGET} {G8E4}"
        for name in ("TPOToken", "GRPOToken")
    ],
    *[
        f"rl --task token_reversal --method {name} {BUDGET} --entropy_diagnostics true"
        for name in ("DG", "DGEntropyGuard", "ASPO", "R2VPO")
    ],
    *[
        f"rl --task token_reversal --method {name} {BUDGET} {G8E4} --entropy_diagnostics true"
        for name in ("GRPO", "TPO")
    ],
]
# So that every rule runs, and every flag that adds columns.
MORE = [
    *[
        f"rl --task token_reversal --method {name} --seq_len 3"
        for name in ("REINFORCE", "PG", "TrajPG", "Kondo", "PMDMean")
    ],
    *[
        f"rl --task token_reversal --method {name} --seq_len 3 --group_size 8"
        for name in ("DrGRPO", "DAPO", "TPONoAnchor", "GroupPG", "MaxRL --binary_reward true")
    ],
    "rl --task mnist --method LogGrowth",
    "rl --task token_reversal --method DG --seq_len 3 --diagnostics true",
]
COMMANDS = README + SWEEPS + MORE
# Columns of the original's row: those of every run, and those that come with a word of the command.
ALWAYS = ["step", "loss", "seed", "method", "delay", "test_error", "entropy", "reward"]
GROUPS = "mixed_group_rate retained_group_rate group_fallback"
CLIPPED = "adv_abs_mean ratio_mean reverse_kl_mean"
TARGET = "tpo_target_entropy tpo_target_top_prob tpo_skill_abs_mean"
CANDIDATES = "candidate_reward behavior_token_reward"
COLUMNS = {
    "PG": "iw_mean",
    "TrajPG": "iw_mean",
    "ASPO": "ratio_mean weight_mean pos_frac",
    "R2VPO": "ratio_mean var_penalty_mean",
    "DG": "gate_mean",
    "Kondo": "gate_mean kept_frac gate_prob_mean",
    "DGToken": "gate_mean rtg_mean",
    "ReplayDG": "gate_mean",
    "FreshDG": "gate_mean freshness_weight batch_age",
    "DGEntropyGuard": "gate_mean entropy_guard_mean",
    "UncertaintyDG": "gate_mean uncertainty_mean",
    "FilteredDG": "gate_mean uncertainty_mean kept_frac",
    "RewardVarianceDG": "gate_mean uncertainty_mean",
    "LogGrowth": "weight_mean",
    "SelfDistillDG": "gate_mean distill_loss",
    "SCOPELite": "gate_mean correction_loss first_error_frac",
    **dict.fromkeys(("GRPO", "DrGRPO", "DAPOLite", "DAPO"), f"{CLIPPED} {GROUPS}"),
    **dict.fromkeys(("TPO", "TPONoAnchor"), f"{TARGET} {GROUPS}"),
    "GroupPG": f"tpo_skill_abs_mean {GROUPS}",
    "TPOFullAction": f"{TARGET} tpo_sample_adv_mean",
    "TPOToken": f"{TARGET} {CANDIDATES}",
    "GRPOToken": f"{CLIPPED} {CANDIDATES}",
    "TEMPO": f"adv_abs_mean td_nonzero_frac iw_mean {GROUPS}",
    "MaxRL": f"adv_abs_mean iw_mean {GROUPS}",
    "PMDMean": "log_ratio_mean",
    "masked_reversal": "test_error_unscored",
    **dict.fromkeys(("chain_reversal", "chain_arithmetic", "format_answer"), "chain_reward"),
    "lm_bandit": "perplexity error_easy error_medium error_hard",
    "--replay_capacity": "replay_age replay_size replay_priority",
    "--diagnostics": "cos_method_ce grad_norm",
    "--entropy_diagnostics": "batch_entropy_before batch_entropy_after batch_delta_entropy "
    "cov_prob_delta_logit entropy_drop_pos_adv entropy_drop_neg_adv "
    + " ".join(
        f"entropy_drop_{of}_{third}"
        for of in ("surprisal", "delight")
        for third in ("low", "mid", "high")
    ),
}
# The original's defaults, of a run and of rules' own settings.
DEFAULTS = """
--task mnist --method DG --delay 0 --num_steps 1000 --batch_size 100 --lr 1e-3 --inner_epochs 1
--eval_every 20 --num_seeds 5 --seed 0 --baseline expected --diagnostics false
--entropy_diagnostics false --verbose true --output results.csv --sweep false --hidden 50
--replay_capacity 0 --replay_priority fresh_delight --replay_age_decay 0.02 --reward_noise 0
--reward_noise_mode none --group_size 4 --vocab_size 2 --seq_len 10 --score_len 5
--binary_reward false --d_model 64 --nhead 2 --num_layers 2 --model_name distilgpt2
--context_len 128 --kl_weight 0
"""
RULE_DEFAULTS = """
--eta 1 --tpo_eta 1 --grpo_beta 0.04 --iw_cap 10 --clip_low 0.2 --clip_high 0.28 --kondo_keep 0.5
--replay_age_decay 0.02 --uncertainty_scale 1 --uncertainty_threshold 0.5 --distill_alpha 0.5
--guard 0.5
"""


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    return write_digits(tmp_path_factory.mktemp("digits") / "digits.npz")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs_and_writes_the_columns_of_the_original(
    command, digits, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(char_model, "_STEPS", 2)
    monkeypatch.setattr(sequences, "_MOST_INPUTS", 0)
    monkeypatch.setattr(sequences, "_DRAWN", 20)
    words = command.split()
    if "mnist" in words or "--task" not in words:
        words += ["--data", str(digits)]
    # Later flags win, so that every command is as short as the original's smoke variants. A delayed
    # batch is evaluated when it is old enough.
    steps = 1 + int(words[words.index("--delay") + 1]) if "--delay" in words else 2
    brief = ["--num_seeds", "1", "--num_steps", str(steps), "--eval_every", "1", "--verbose"]
    target = tmp_path / "rows.csv"
    words = [*words, "--batch_size", "16", *brief, "false", "--output", str(target)]
    sandbox.main(words)
    rows = pd.read_csv(target)
    assert list(rows.columns[: len(ALWAYS)]) == ALWAYS
    own = [name for word in words for name in COLUMNS.get(word, "").split()]
    assert set(own) - set(rows.columns) == set()
    assert rows[own].notna().any().all()
    assert rows["test_error"].between(0, 1).all() and rows["loss"].notna().any()
    assert capsys.readouterr().out == ""
    if "--sweep" in words:
        assert rows.groupby(["method", "delay"]).ngroups == 36


def test_every_rule_has_a_command():
    assert set(RULES) <= {word for command in COMMANDS for word in command.split()}


def test_the_defaults_are_those_of_the_original(digits):
    data = ["--data", str(digits)]
    assert read_runs("rl", data) == read_runs("rl", [*DEFAULTS.split(), *data])
    words = RULE_DEFAULTS.split()
    given = dict(zip(words[::2], map(float, words[1::2]), strict=True))
    for rule in RULES.values():
        for key, flag in flags_of(rule).items():
            assert rule.model_fields[key].default == given[f"--{flag}"], flag


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("rl --bach_size 3", r"--bach_size: no such option; did you mean '--batch_size'\?"),
        ("rl --method TPX", "did you mean 'TPO'"),
        ("rl --sweep --method TPX", "did you mean 'TPO'"),
        ("rl --task token_reversal --method GRPO --tpo_eta 5", "--tpo_eta: GRPO has no such"),
        ("vpo --method MultiRLVR --set_score exact", "--set_score: MultiRLVR has no such"),
        ("rl --task digits", "task: 'digits': there is no such one"),
        ("rl --verbose maybe", "verbose: input should be a valid boolean"),
        ("rl --tpo_eta x", "--tpo_eta: DG has no such setting"),
        ("rl --num_seeds 0", "num_seeds: input should be"),
        ("rl --task token_reversal --eta 0", "rl: rule.eta: input should be greater than 0"),
        ("rl --task token_reversal --method GRPO --rule clip=0", "rule.clip: input should be"),
        ("opd --top_k 0 --method OPDTopKTail", "rule.k: input should be"),
        ("rl --task token_reversal --method GRPO --rule norm=max", "rule.norm: input should be"),
        ("rl --task token_reversal --method TPO --batch_size 10", "no multiple of group_size 4"),
        ("rl --task token_reversal --rule eta", "rl: Parsing error encountered for rule"),
        ("rl --task token_reversal --rule cap=1", "rule.cap: unknown key"),
        ("rl --task token_reversal --output .", "--output: . is a folder"),
        ("rl --task token_reversal --method PG --allow_degenerate false", "PG needs ratios"),
        (
            "rl --task token_reversal --output /dev/null/rows.csv",
            "--output: /dev/null is a file; a folder was expected",
        ),
        ("rl_oracle --train_steps 0,-2", "train_steps: input should be greater"),
        ("rl_oracle --train_steps 0,x", "train_steps: input should be a valid integer"),
        ("rl_oracle --eval_every 5", "--eval_every: no such option"),
        ("rl --device gpu", "device: input should be 'cpu' or 'cuda'"),
        pytest.param(
            "rl --device cuda",
            "--device cuda: PyTorch .* can use no GPU here",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here"),
        ),
        ("r", "r: no such piece; did you mean 'rl'"),
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


def test_a_run_that_fails_keeps_the_file_of_an_earlier_one(tmp_path, capsys):
    target = tmp_path / "rows.csv"
    target.write_text("earlier", encoding="utf-8")
    words = "rl --task token_reversal --seq_len 3 --num_steps 3 --num_seeds 1 --verbose false"
    with pytest.raises(UserError, match="not finite"):
        sandbox.main([*words.split(), "--lr", "1e30", "--output", str(target)])
    assert target.read_text(encoding="utf-8") == "earlier" and list(tmp_path.iterdir()) == [target]
    assert (
        "rows.csv is there already; the run replaces it when it is done" in capsys.readouterr().err
    )


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
        given = [
            *(f"--rule={each}" for each in rule),
            "--verbose",
            "false",
            "--output",
            str(target),
        ]
        sandbox.main([*words.split(), *given])
        rows.append(pd.read_csv(target)["adv_abs_mean"][0])
    assert rows[0] < rows[1]


@pytest.mark.parametrize(
    ("words", "unread"),
    [
        ("rl --task token_reversal --method GRPO --tpo_eta 5", "--tpo_eta: GRPO has no such"),
        ("opd --method OPDReverseKL --top_k 4", "--top_k: OPDReverseKL has no such"),
        ("opd --teacher_temperature 2", "teacher_temperature: task reversal has none"),
        ("rl --task token_reversal --score_len 2", "score_len: task token_reversal has none"),
        ("rl --task token_reversal --replay_priority uniform", "replay_priority: a run without"),
        ("rl --task token_reversal --method GRPO --baseline zero", "baseline: GRPO has none"),
        ("rl --task token_reversal --group_size 5", "group_size: DG has none"),
        ("pedagogy --method StudentGRPO --teacher_steps 3", "teacher_steps: StudentGRPO has none"),
        ("vpo --method MultiRLVR --set_score exact", "--set_score: MultiRLVR has no such"),
        (
            "pedagogy --method StudentGRPO --reward_form product",
            "--reward_form: StudentGRPO has no",
        ),
        ("pedagogy --method TeacherRL --penalty mean", "--penalty: TeacherRL has no such"),
    ],
)
def test_a_setting_that_nothing_reads_cannot_be_given(words, unread, tmp_path):
    with pytest.raises(UserError, match=unread):
        sandbox.main([*words.split(), "--output", str(tmp_path / "rows.csv")])


@pytest.mark.parametrize(
    "words",
    [
        "rl --task token_reversal --method DG --eta 2",
        # Replay reads the flag, whatever the rule.
        "rl --task token_reversal --method ReplayDG --replay_capacity 2 --replay_age_decay 0.5",
        "rl --task masked_reversal --seq_len 2 --method DG --score_len 2",
        "opd --method OPDTopKTail --top_k 2",
        "opd --task soft_reversal --teacher_temperature 2",
        "pedagogy --method TeacherRL --teacher_steps 2",
    ],
)
def test_a_setting_that_something_reads_can_be_given(words):
    piece, *rest = words.split()
    assert not read_runs(piece, rest)[0][0].notes


def test_an_interrupted_run_says_that_nothing_was_written(tmp_path):
    target = tmp_path / "rows.csv"
    words = ["rl", "--task", "token_reversal", "--num_steps", "100000", "--output", str(target)]
    command = [sys.executable, "-m", "hgrpo.cli.sandbox", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as process:
        said = ""
        while "/100000" not in said:  # The bar appears once training has begun.
            said += process.stderr.read(1)
        process.send_signal(signal.SIGINT)
        said += process.communicate()[1]
    assert process.returncode == 130
    # The bar's line may not have ended yet.
    assert "interrupted: nothing was written, because rows" in said.splitlines()[-1]
    assert not target.exists()


@pytest.mark.parametrize(
    "words",
    [
        "rl --task token_reversal --method ASPO --seq_len 2 --num_steps 1 --num_seeds 1",
        "rl_oracle --method ASPO --seq_len 2 --batch_size 8 --train_steps 0,1",
    ],
)
def test_degenerate_runs_are_noted(words, tmp_path, capsys):
    sandbox.main([*words.split(), "--verbose", "false", "--output", str(tmp_path / "rows.csv")])
    assert "note: ASPO needs ratios other than 1" in capsys.readouterr().err


def test_the_oracle_study_writes_its_samples(tmp_path, capsys):
    target = tmp_path / "samples.csv"
    words = "rl_oracle --seq_len 2 --batch_size 12 --train_steps 0,2 --verbose false"
    sandbox.main([*words.split(), "--output", str(target)])
    rows = pd.read_csv(target)
    assert rows["step"].value_counts().to_dict() == {0: 12, 2: 12}
    assert capsys.readouterr().out.count("corr_delight_projection") == 2
