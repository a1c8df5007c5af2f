"""The command line: commands of the original for every rule, their columns, defaults and slips."""

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
from hgrpo.formulas import kinds
from hgrpo.sandbox.old_flags import flags_of
from hgrpo.sandbox.rl.tasks import char_model
from hgrpo.sandbox.single_runs import COMMANDS as PIECES
from hgrpo.sandbox.single_runs import read_run
from hgrpo.sandbox.tasks import sequences

G8E4 = "--group_size 8 --inner_epochs 4"
NOISE = "--reward_noise 0.2 --reward_noise_mode false_positive_rare_token"
BUDGET = "--batch_size 96 --num_steps 300 --eval_every 20 --num_seeds 3"
SHORT = "--num_seeds 1 --eval_every 1 --batch_size 16 --verbose false"
# Columns of the original's rows.
GROUPS = "mixed_group_rate retained_group_rate group_fallback"
CLIPPED = "adv_abs_mean ratio_mean reverse_kl_mean"
TARGET = "tpo_target_entropy tpo_target_top_prob tpo_skill_abs_mean"
CANDIDATES = "candidate_reward behavior_token_reward"
REPLAY = "replay_age replay_size replay_priority"
ENTROPY = "batch_entropy_before batch_entropy_after batch_delta_entropy cov_prob_delta_logit"
ENTROPY += " entropy_drop_pos_adv entropy_drop_neg_adv" + "".join(
    f" entropy_drop_{name}_{third}"
    for name in ("surprisal", "delight")
    for third in ("low", "mid", "high")
)
TOP_K = "top1_agreement student_topk_mass teacher_topk_mass topk_support_size"
SETS = "gold_set_reward adv_abs_mean ratio_mean mean_scalar_reward best_at_1 best_at_3 best_at_9"
SETS += " pool_diversity_l1"
TEACHER = "task_reward avg_student_surprisal teacher_loss teacher_reward teacher_adv_abs_mean"
TEACHER += " teacher_ratio_mean teacher_mixed_group_rate teacher_entropy teacher_test_error"
TEACHER += " teacher_sample_task_reward teacher_reward_eval"
LESSON = TEACHER + " pedagogy_reward learnability spike_penalty avg_surprise_gap max_surprise_gap"
LESSON += " assim_loss assim_gate_mean assim_logp_mean"
# A command of every rule -> columns that it adds to those of its piece. What follows
# `python -m rl_sandbox.train` in the original follows `rl` here.
COMMANDS = {
    f"rl --task token_reversal --method TPO {G8E4} {BUDGET}": f"{TARGET} {GROUPS}",
    f"rl --task token_reversal --method GRPO {BUDGET} {G8E4} --entropy_diagnostics true": (
        f"{CLIPPED} {GROUPS} {ENTROPY}"
    ),
    "rl --method DG --delay 3": "gate_mean",
    "rl --task mnist --method TPOFullAction": f"{TARGET} tpo_sample_adv_mean",
    "rl --task mnist --method LogGrowth": "weight_mean",
    "rl --task lm_bandit --method DG --model_name char --lr 5e-5 --context_len 8": (
        "perplexity error_easy error_medium error_hard"
    ),
    "rl --task chain_arithmetic --method DG --seq_len 3 --vocab_size 5": "chain_reward",
    "rl --task format_answer --method DG --seq_len 3 --vocab_size 5": "chain_reward",
    "rl --task token_reversal --method DG --seq_len 2 --diagnostics true": (
        "gate_mean cos_method_ce grad_norm"
    ),
    f"rl --task token_reversal --method FreshDG {BUDGET} --delay 2 --replay_capacity 32 "
    "--replay_age_decay 0.5": f"gate_mean freshness_weight batch_age {REPLAY}",
    f"rl --task token_reversal --method ReplayDG {BUDGET} --replay_capacity 5": (
        f"gate_mean {REPLAY}"
    ),
    f"rl --task token_reversal --method DGEntropyGuard {BUDGET}": "gate_mean entropy_guard_mean",
    f"rl --task token_reversal --method UncertaintyDG {BUDGET} {NOISE}": (
        "gate_mean uncertainty_mean"
    ),
    f"rl --task token_reversal --method FilteredDG {BUDGET} {NOISE} --uncertainty_threshold 0.2": (
        "gate_mean uncertainty_mean kept_frac"
    ),
    f"rl --task token_reversal --method RewardVarianceDG {BUDGET} {NOISE}": (
        "gate_mean uncertainty_mean"
    ),
    f"rl --task token_reversal --method ASPO {BUDGET} {NOISE}": "ratio_mean weight_mean pos_frac",
    f"rl --task token_reversal --method R2VPO {BUDGET} {NOISE}": "ratio_mean var_penalty_mean",
    "rl --task token_reversal --method Kondo --seq_len 3": "gate_mean kept_frac gate_prob_mean",
    "rl --task token_reversal --method REINFORCE --seq_len 3": "",
    "rl --task token_reversal --method PG --seq_len 3": "iw_mean",
    "rl --task token_reversal --method TrajPG --seq_len 3": "iw_mean",
    "rl --task token_reversal --method PMDMean --seq_len 3": "log_ratio_mean",
    f"rl --task token_reversal --method DAPOLite {G8E4}": f"{CLIPPED} {GROUPS}",
    f"rl --task token_reversal --method DAPO {G8E4}": f"{CLIPPED} {GROUPS}",
    f"rl --task token_reversal --method DrGRPO {G8E4}": f"{CLIPPED} {GROUPS}",
    f"rl --task token_reversal --method TPONoAnchor {G8E4}": f"{TARGET} {GROUPS}",
    f"rl --task token_reversal --method GroupPG {G8E4}": f"tpo_skill_abs_mean {GROUPS}",
    f"rl --task token_reversal --method MaxRL {G8E4} --binary_reward true --seq_len 2": (
        f"adv_abs_mean iw_mean {GROUPS}"
    ),
    "rl --task chain_reversal --method CE": "chain_reward",
    "rl --task chain_reversal --method SelfDistillDG": "gate_mean distill_loss chain_reward",
    "rl --task chain_reversal --method SCOPELite": "gate_mean correction_loss first_error_frac",
    "rl --task masked_reversal --method DGToken": "gate_mean rtg_mean test_error_unscored",
    "rl --task masked_reversal --method TEMPO --group_size 8": (
        f"adv_abs_mean td_nonzero_frac iw_mean {GROUPS}"
    ),
    f"rl --task masked_reversal --method TPOToken {G8E4}": f"{TARGET} {CANDIDATES}",
    f"rl --task masked_reversal --method GRPOToken {G8E4}": f"{CLIPPED} {CANDIDATES}",
    "opd train --task reversal --method OPDReverseKL --num_steps 300": (
        "opd_reverse_kl teacher_entropy student_entropy top1_agreement diag_reverse_kl "
        "diag_forward_kl diag_sampled_reverse_kl diag_teacher_entropy diag_student_entropy "
        "diag_entropy_gap diag_top1_agreement diag_overlap_at_2"
    ),
    "opd --task reversal --method OPDPG --num_steps 300": (
        "sampled_reverse_kl opd_advantage_mean ratio_mean"
    ),
    "opd --task soft_reversal --method OPDTopKReverseKL --top_k_support intersection": (
        f"{TOP_K} opd_topk_reverse_kl"
    ),
    "opd --task format_answer --method OPDTopKTail --top_k 2": TOP_K,
    "opd --method OPDTopKRenormalised": TOP_K,
    "opd --method OPDTopKForwardKL": TOP_K,
    "vpo --method VPOGRPO --group_size 8 --num_candidates 3 --num_steps 500": SETS,
    "vpo --method ScalarGRPO --num_candidates 1 --group_size 8": SETS,
    "vpo --method MultiRLVR --num_candidates 3 --group_size 8": SETS,
    "vpo --set_score exact --slot_credit marginal --compat reference": SETS,
    "pedagogy --method PedagogicalRL --group_size 8 --num_steps 300": LESSON,
    "pedagogy --method StudentGRPO": "student_loss student_reward student_mixed_group_rate "
    "student_adv_abs_mean student_ratio_mean",
    "pedagogy --method TeacherRL": f"{TEACHER} teacher_additive_reward sft_loss",
    "pedagogy --reward_form additive --penalty mean --imitation plain --content_vocab_size 11 "
    "--answer_len 2": TEACHER,
}
# Columns of every run of a piece, beside those that lead.
ALWAYS = {
    "rl": "step loss seed method delay test_error entropy reward",
    "opd": "test_error entropy reward",
    "vpo": "seed method task",
    "pedagogy": "step seed method task test_error reward entropy",
}
# The original's defaults of a run, and of rules' own settings.
_OPD = "--vocab_size 2 --seq_len 10 --overlap_k 2 --batch_size 64 --lr 1e-3 --num_seeds 3 --seed 0"
DEFAULTS = {
    "rl": """
--task mnist --method DG --delay 0 --num_steps 1000 --batch_size 100 --lr 1e-3 --inner_epochs 1
--eval_every 20 --num_seeds 5 --seed 0 --baseline expected --diagnostics false
--entropy_diagnostics false --verbose true --output results.csv --hidden 50
--replay_capacity 0 --replay_priority fresh_delight --replay_age_decay 0.02 --reward_noise 0
--reward_noise_mode none --group_size 4 --vocab_size 2 --seq_len 10 --score_len 5
--binary_reward false --d_model 64 --nhead 2 --num_layers 2 --model_name distilgpt2
--context_len 128 --kl_weight 0
""",
    "opd": f"--task reversal --method OPDReverseKL --teacher_epsilon 1e-3 {_OPD} --num_steps 500 "
    "--eval_every 20 --d_model 64 --nhead 2 --num_layers 2",
    "vpo": "--method VPOGRPO --batch_size 128 --group_size 8 --num_candidates 3 --inner_epochs 4 "
    "--num_steps 500 --lr 3e-3 --hidden 32 --num_prompts 8 --eval_every 20 --num_seeds 3",
    "pedagogy": "--method PedagogicalRL --batch_size 96 --group_size 8 --num_steps 300 "
    "--eval_every 20 --num_seeds 3 --teacher_lr 1e-3 --student_lr 1e-3",
}
RULE_DEFAULTS = """
--eta 1.0 --tpo_eta 1.0 --grpo_beta 0.04 --iw_cap 10.0 --clip_low 0.2 --clip_high 0.28
--kondo_keep 0.5 --replay_age_decay 0.02 --uncertainty_scale 1.0 --uncertainty_threshold 0.5
--distill_alpha 0.5 --guard 0.5 --clip_epsilon 0.2 --top_k 2 --top_k_support student
--slot_credit shared --set_score drawn --num_weight_samples 16 --learnability_lambda 0.5
--imitated all --spike_beta 5.0 --gate_kappa 4.0 --gate_gamma -2.5 --reward_form product
--penalty spike --imitation gated
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
    piece, *flags = command.split()
    if "mnist" in flags or command.startswith("rl --method"):
        flags += ["--data", str(digits)]
    elif piece != "vpo":
        flags += ["--d_model", "16"]
    target = tmp_path / "rows.csv"
    # Later flags win. A delayed batch is evaluated once it is old enough.
    flags += [*SHORT.split(), "--num_steps", "4" if "--delay" in flags else "2"]
    sandbox.main([piece, *flags, "--output", str(target)])
    rows = pd.read_csv(target)
    leading = PIECES[piece].first.split()
    columns = [*leading, *ALWAYS[piece].split(), *COMMANDS[command].split()]
    assert [*rows][: len(leading)] == leading and set(columns) <= set(rows)
    assert rows[columns].notna().any().all()
    assert rows["test_error"].between(0, 1).all() if "test_error" in rows else True
    assert capsys.readouterr().out == ""


def test_every_rule_has_a_command():
    commanded = {word for command in COMMANDS for word in command.split()}
    rules = {name: rule for piece in PIECES for name, rule in kinds.of_piece(piece).items()}
    of_users = {name for name, rule in rules.items() if "our own" in rule.__doc__}
    assert rules.keys() - of_users <= commanded


@pytest.mark.parametrize("piece", DEFAULTS)
def test_the_defaults_are_those_of_the_original(piece):
    assert read_run(piece, []) == read_run(piece, DEFAULTS[piece].split())
    words = RULE_DEFAULTS.split()
    defaults = dict(zip(words[::2], words[1::2], strict=True))
    for rule in kinds.of_piece(piece).values():
        for key, flag in flags_of(rule).items():
            assert str(rule.model_fields[key].default) == defaults[f"--{flag}"], flag
    assert {flag for rule in kinds.every().values() for flag in flags_of(rule).values()} == {
        word.removeprefix("--") for word in defaults
    }


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("r", "r: no such experiment; did you mean 'rl'"),
        ("rl --bach_size 3", "unrecognized arguments: --bach_size"),
        ("rl --method TPX", "unknown rule; did you mean 'TPO'"),
        ("rl --task digits", "rl: task: input should be 'mnist', "),
        ("rl --verbose maybe", "verbose: input should be a valid boolean"),
        ("vpo --method MultiRLVR --set_score exact", "--set_score: not a setting of MultiRLVR"),
        ("rl --task token_reversal --eta 0", "rl: rule.eta: input should be greater than 0"),
        ("opd --top_k 0 --method OPDTopKTail", "opd: phases.0.rule.k: input should be"),
        ("rl --task token_reversal --rule eta", "rl: Parsing error encountered for rule"),
        ("rl --task token_reversal --rule cap=1", "rule.cap: unknown key"),
        ("rl --task token_reversal --output .", "--output: . is a folder"),
        ("rl --task token_reversal --output /dev/null/rows.csv", "--output: /dev/null: File exi"),
        ("rl --task token_reversal --method PG --allow_degenerate false", "PG requires ratios"),
        ("rl_oracle --train_steps 0,x", "train_steps: input should be a valid integer"),
        ("rl_oracle --eval_every 5", "unrecognized arguments: --eval_every"),
    ],
)
def test_a_mistake_takes_one_line_and_exits_with_2(command, text, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["sandbox", *command.split()])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        run(sandbox.main)
    message = capsys.readouterr().err.strip()
    assert stopped.value.code == 2 and message.startswith("error: ") and "\n" not in message
    assert re.search(text, message)
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_fails_keeps_the_file_of_an_earlier_one(tmp_path, capsys):
    target = tmp_path / "rows.csv"
    target.write_text("earlier", encoding="utf-8")
    words = "rl --task token_reversal --seq_len 3 --num_steps 3 --num_seeds 1 --verbose false"
    with pytest.raises(UserError, match="not finite"):
        sandbox.main([*words.split(), "--lr", "1e30", "--output", str(target)])
    assert target.read_text(encoding="utf-8") == "earlier" and list(tmp_path.iterdir()) == [target]
    assert "rows.csv already exists and will be replaced" in capsys.readouterr().err


def test_spellings_of_flags_notes_and_the_closing_line(tmp_path, capsys):
    target = tmp_path / "rows.csv"
    words = "rl --task=token_reversal --method ASPO --batch-size=8 --seq-len 2 --num-steps 1"
    sandbox.main([*words.split(), "--seed=7", "--num-seeds", "2", "--output", str(target)])
    assert pd.read_csv(target)["seed"].tolist() == [7, 8, 7, 8]
    printed = capsys.readouterr()
    assert re.match(
        rf"{re.escape(str(target))}: 4 rows; last test_error [01]\.\d{{4}}\n", printed.out
    )
    assert "note: ASPO requires ratios other than 1" in printed.err
    with pytest.raises(SystemExit):
        sandbox.main(["pedagogy", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "teacher batches per training step (default: 1)" in text
        and "without effect (default: True)" in text
    )
    assert "--gate_kappa str PedagogicalRL: steepness of the gate" in text


def test_a_setting_without_a_flag_of_its_own():
    words = "--task token_reversal --method GRPO --rule=norm=std --rule=clip=null"
    settings, _ = read_run("rl", words.split())
    assert (settings.rule.norm, settings.rule.clip) == ("std", None)


@pytest.mark.parametrize(
    ("words", "unread"),
    [
        ("rl --task token_reversal --method GRPO --tpo_eta 5", "--tpo_eta: not a setting of GRPO"),
        ("rl --task token_reversal --score_len 2", "score_len: task token_reversal does not"),
        ("rl --task token_reversal --replay_priority uniform", "replay_priority: a run without"),
        ("rl --task token_reversal --method GRPO --baseline zero", "baseline: GRPO does not"),
        ("opd --teacher_temperature 2", "teacher_temperature: task reversal does not"),
        ("pedagogy --method StudentGRPO --teacher_steps 3", "teacher_steps: StudentGRPO does not"),
        ("rl --task token_reversal --method DG --eta 2", ""),
        # Replay reads the flag, whatever the rule.
        ("rl --task token_reversal --replay_capacity 2 --replay_age_decay 0.5", ""),
        ("rl --task masked_reversal --seq_len 2 --score_len 2", ""),
        ("opd --task soft_reversal --teacher_temperature 2", ""),
        ("pedagogy --method TeacherRL --teacher_steps 2", ""),
    ],
)
def test_a_setting_that_nothing_reads_cannot_be_given(words, unread):
    piece, *flags = words.split()
    if not unread:
        assert not read_run(piece, flags)[0].notes
        return
    with pytest.raises(UserError, match=unread):
        read_run(piece, flags)


def test_an_interrupted_run_says_that_nothing_was_written(tmp_path):
    target = tmp_path / "rows.csv"
    words = ["rl", "--task", "token_reversal", "--num_steps", "100000", "--output", str(target)]
    command = [sys.executable, "-m", "hgrpo.cli.sandbox", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as process:
        text = ""
        while "/100000" not in text:  # The bar appears once training has begun.
            text += process.stderr.read(1)
        process.send_signal(signal.SIGINT)
        text += process.communicate()[1]
    assert process.returncode == 130
    # The bar's line may not have ended yet.
    assert "interrupted: no results were saved, because they" in text.splitlines()[-1]
    assert not target.exists()


def test_the_oracle_study_writes_its_samples(tmp_path, capsys):
    target = tmp_path / "samples.csv"
    words = "rl_oracle --method ASPO --seq_len 2 --batch_size 12 --train_steps 0,2 --verbose false"
    sandbox.main([*words.split(), "--output", str(target)])
    rows = pd.read_csv(target)
    assert rows["step"].value_counts().to_dict() == {0: 12, 2: 12}
    printed = capsys.readouterr()
    assert printed.out.count("corr_delight_projection") == 2
    assert "note: ASPO requires ratios other than 1" in printed.err


def test_commands_and_settings_load_without_torch(project):
    code = "import sys, hgrpo.cli.sandbox; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.strip() == "False"
