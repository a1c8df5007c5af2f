"""Every run that is refused, each in one line that names what is wrong, with nothing written."""

import subprocess
import sys

import pytest

from hgrpo.cli import sandbox
from hgrpo.config.read import validate
from hgrpo.errors import UserError
from hgrpo.sandbox.opd.microscope.settings import MicroscopeSettings
from hgrpo.sandbox.opd.settings import NEEDS, RULES, OpdSettings

TRAIN, COMPARE, STABLE, COLD = "", "compare", "topk_stability", "topk_cold_start"
SWEEP, SOFT, MICROSCOPE = "topk_warmup_sweep", "soft_teacher_topk", "variance_microscope"
TOP_K = "--method OPDTopKReverseKL"
STRICT = "--allow_degenerate false"

REFUSED = [
    (
        TRAIN,
        "--task reversl",
        "task: 'reversl': there is no such one; did you mean 'reversal'?",
    ),
    (TRAIN, "--method OPDReversKL", "there is no such one; did you mean 'OPDReverseKL'?"),
    (TRAIN, "--num_step 3", "--num_step: no such option; did you mean '--num_steps'?"),
    ("topk_stabilty", "", "topk_stabilty: no such experiment; did you mean"),
    *[
        (TRAIN, f"--{flag} 0", flag)
        for flag in ("num_steps", "batch_size", "lr", "eval_every", "num_seeds", "inner_epochs")
        + ("seq_len", "d_model", "nhead", "num_layers", "overlap_k")
    ],
    (TRAIN, "--vocab_size 1", "vocab_size"),
    (TRAIN, "--lr nan", "lr"),
    (TRAIN, "--d_model 63", "d_model 63 is no multiple of nhead 2"),
    *[
        (TRAIN, f"--teacher_epsilon {value}", f"teacher_epsilon {value}")
        for value in (0.0, 1.0, -0.1)
    ],
    (TRAIN, "--task format_answer --seq_len 1", "format_answer needs seq_len of at least 2"),
    (TRAIN, "--task soft_reversal --teacher_temperature 0", "teacher_temperature"),
    (TRAIN, "--task soft_reversal --special_token_weight 0", "special_token_weight"),
    (TRAIN, f"{TOP_K} --top_k 0", "rule.k"),
    (TRAIN, f"{TOP_K} --top_k_support both", "rule.support: input should be"),
    (TRAIN, "--method OPDPG --clip_epsilon -0.1", "rule.clip"),
    (TRAIN, "--method OPDPG --clip_epsilon 0", "rule.clip"),
    (TRAIN, "--verbose maybe", "verbose: input should be"),
    (TRAIN, "--seed x", "seed: input should be a valid integer"),
    # What the original lets pass.
    (
        TRAIN,
        "--method OPDTopKRenormalised --top_k 1",
        "OPDTopKRenormalised needs a top_k above 1; given",
    ),
    (TRAIN, f"{TOP_K} --top_k 3 {STRICT}", "OPDTopKReverseKL needs a top_k below the number"),
    (TRAIN, f"--method OPDPG {STRICT}", "OPDPG needs ratios other than 1"),
    (TRAIN, "--output .", "--output: . is a folder"),
    (COMPARE, "--method OPDPG", "--method: no such option"),
    (COMPARE, "--clip_epsilon 0", "clip_epsilon"),
    *[
        (name, f"--output_dir {folder}", text)
        for name in (COMPARE, MICROSCOPE)
        for folder, text in (
            ("file", "--output_dir: file is a file; a folder was expected"),
            ("file/below", "--output_dir: file/below: Not a directory"),
        )
    ],
    (STABLE, "--top_ks 1,x", "top_ks: input should be"),
    (STABLE, "--top_ks 0", "top_ks: input should be"),
    (STABLE, "--task sorting", "task: 'sorting': there is no such one"),
    (COLD, "--warmup_steps 300", "warmup_steps: 300 must be below num_steps, 300"),
    (COLD, "--warmup_steps -1", "warmup_steps"),
    (SWEEP, "--warmup_steps 0,400", "warmup_steps: 400 must be below num_steps, 300"),
    (SWEEP, "--warmup_steps -1", "warmup_steps: input should be"),
    (SOFT, "--supports student,both", "supports: input should be"),
    (SOFT, "--teacher_epsilon 0.1", "--teacher_epsilon: no such option"),
    (MICROSCOPE, "--num_batches 1", "num_batches"),
    (MICROSCOPE, "--batch_size 1", "batch_size"),
    (MICROSCOPE, "--horizons 0", "horizons: input should be"),
    (MICROSCOPE, "--horizons 4,a", "horizons: input should be"),
    (MICROSCOPE, "--teacher_epsilon 1", "teacher_epsilon"),
    (MICROSCOPE, "--d_model 31", "d_model 31 is no multiple of nhead 2"),
    (MICROSCOPE, "--vocab_size 1", "vocab_size"),
]


@pytest.mark.parametrize(("name", "flags", "text"), REFUSED)
def test_a_run_that_cannot_be_is_refused_in_one_line(name, flags, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(UserError) as caught:
        sandbox.main(["opd", *name.split(), *flags.split()])
    assert text in str(caught.value) and "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("model", "given", "text"),
    [
        (MicroscopeSettings, {"horizons": []}, "horizons: at least one value was expected"),
        (OpdSettings, {"phases": []}, "phases: at least one was expected"),
        (
            OpdSettings,
            {"phases": [{"start": 3}]},
            "phases: the first starts at step 3; 0 was expected",
        ),
        (
            OpdSettings,
            {"phases": [{}, {"start": 5}, {"start": 5}]},
            "phases: starts [0, 5, 5] do not rise",
        ),
        (
            OpdSettings,
            {"phases": [{}, {"start": 500}]},
            "phases: one starts at step 500, and num_steps is 500",
        ),
        (OpdSettings, {"phases": [{"rule": {"k": 3}}]}, "phases.0.rule.k: unknown key"),
        (OpdSettings, {"phases": [{"k": 3}]}, "phases.0.k: unknown key"),
        (OpdSettings, {"seeds": [1, 1]}, "seeds: one is listed twice"),
        (OpdSettings, {"seeds": []}, "seeds: "),
    ],
)
def test_a_file_that_cannot_be_is_refused_in_one_line(model, given, text):
    with pytest.raises(UserError) as caught:
        validate(model, given, "study.yaml")
    assert text in str(caught.value) and "\n" not in str(caught.value)


def test_every_need_refuses_in_the_table():
    assert {name for rule in RULES.values() for name in rule.needs} == set(NEEDS)
    text = " ".join(text for _, _, text in REFUSED)
    assert [name for name, need in NEEDS.items() if need.text[:18] not in text] == []


def test_a_refusal_exits_with_2_and_one_line_and_loads_no_torch(project, tmp_path):
    code = (
        "import sys, hgrpo.cli.sandbox as s\n"
        "from hgrpo.command import run\n"
        "try: run(lambda: s.main(['opd', 'topk_cold_start', '--warmup_steps', '999']))\n"
        "finally: print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (2, "False")
    assert done.stderr == "error: warmup_steps: 999 must be below num_steps, 300\n"


def test_a_loss_that_is_not_finite_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = ["--num_steps", "3", "--seq_len", "2", "--d_model", "8", "--verbose", "false"]
    with pytest.raises(UserError, match="not finite"):
        sandbox.main(["opd", "compare", "--lr", "1e30", *small])
    assert not any(path.is_file() for path in tmp_path.rglob("*"))
