"""The commands of the original's readme, shortened by further flags, and the files they write."""

import pandas as pd
import pytest

from hgrpo.cli import sandbox
from hgrpo.sandbox.old_flags import flags_of
from hgrpo.sandbox.opd import command as opd
from hgrpo.sandbox.opd.experiments.table import EXPERIMENTS
from hgrpo.sandbox.opd.microscope.estimators import ESTIMATORS
from hgrpo.sandbox.opd.microscope.settings import MicroscopeSettings
from hgrpo.sandbox.opd.settings import RULES, OpdSettings
from hgrpo.sandbox.single_runs import read_runs

# What follows `python -m opd_sandbox.` there follows `opd` here, without `train` or `experiments.`;
# with the names of the files that the command writes.
COMMANDS = {
    "opd --task reversal --method OPDReverseKL --batch_size 64 --num_steps 300 --eval_every 20": (
        "rows",
    ),
    "opd --task reversal --method OPDPG --batch_size 64 --num_steps 300 --eval_every 20": ("rows",),
    "opd compare --task reversal --batch_size 64 --num_steps 300 --eval_every 20 --num_seeds 3": (
        *("reversal_OPDReverseKL", "reversal_OPDPG", "reversal_opd_compare"),
    ),
    "opd topk_stability --top_ks 1,2,4 --num_steps 300 --num_seeds 3": (
        *("topk_stability", "topk_stability_full_vocab_rkl", "topk_stability_sampled_pg"),
        *(f"topk_stability_topk_rkl_k{k}" for k in (1, 2, 4)),
    ),
    "opd topk_cold_start --top_ks 1,2,4 --num_steps 300 --warmup_steps 100 --num_seeds 3": (
        *("topk_cold_start", "topk_cold_start_full_vocab_rkl"),
        *(f"topk_cold_start_{heat}_topk_k{k}" for heat in ("cold", "warm") for k in (1, 2, 4)),
    ),
    "opd topk_warmup_sweep --top_ks 4,8 --warmup_steps 0,50,100,150,200,250 --num_steps 300 "
    "--num_seeds 3": (
        *("topk_warmup_sweep", "topk_warmup_sweep_full_vocab_rkl"),
        *(f"topk_warmup_sweep_topk_k{k}_warm{step}" for k in (4, 8) for step in (0, 2)),
    ),
    "opd soft_teacher_topk --top_ks 4 --supports student,teacher,intersection "
    "--warmup_steps 0,100,200,250 --num_steps 300 --num_seeds 3": (
        *("soft_teacher_topk", "soft_teacher_topk_full_vocab_rkl"),
        *(
            f"soft_teacher_topk_topk_{support}_k4_warm{step}"
            for support in ("student", "teacher", "intersection")
            for step in (0, 2)
        ),
    ),
}
MICROSCOPE = "opd variance_microscope --horizons 4,8,16,32 --num_batches 40 --num_seeds 3"
# The original's defaults, by the words that choose what runs.
_SMALL = "--batch_size 64 --lr 1e-3 --num_seeds 3 --seed 0 --d_model 64 --nhead 2 --num_layers 2"
_TOP_K = f"--vocab_size 8 --seq_len 8 --overlap_k 4 --num_steps 300 {_SMALL}"
_LONG = f"--vocab_size 2 --seq_len 10 --overlap_k 2 --num_steps 500 --eval_every 20 {_SMALL}"
DEFAULTS = {
    "train": f"--task reversal --method OPDReverseKL --teacher_epsilon 1e-3 {_LONG}",
    "compare": f"--task reversal --teacher_epsilon 1e-3 --clip_epsilon 0.2 {_LONG}",
    "variance_microscope": "--horizons 4,8,16,32 --num_batches 40 --batch_size 16 --num_seeds 3 "
    "--vocab_size 2 --d_model 32 --nhead 2 --num_layers 1 --teacher_epsilon 1e-3",
    "topk_stability": f"--top_ks 1,2,4 --clip_epsilon 0.2 --eval_every 20 {_TOP_K}",
    "topk_cold_start": f"--top_ks 1,2,4 --warmup_steps 100 --eval_every 20 {_TOP_K}",
    "topk_warmup_sweep": "--top_ks 4,8 --warmup_steps 0,50,100,150,200,250 --eval_every 10 "
    f"{_TOP_K}",
    "soft_teacher_topk": "--top_ks 4 --supports student,teacher,intersection --warmup_steps "
    "0,100,200,250 --teacher_temperature 1 --special_token_weight 0.02 --eval_every 10 "
    f"{_TOP_K}",
}
RULE_DEFAULTS = "--clip_epsilon 0.2 --top_k 2 --top_k_support student"
SHORT = "--num_steps 3 --num_seeds 2 --seq_len 3 --d_model 8 --batch_size 8 --verbose false"
WARMUPS = {"topk_cold_start": "1", "topk_warmup_sweep": "0,2", "soft_teacher_topk": "0,2"}


def run(words, folder):
    """Run the command, which later flags make short."""
    name = words.split()[1]
    warmup = f"--warmup_steps {WARMUPS[name]}" if name in WARMUPS else ""
    target = "--output out/rows.csv" if name.startswith("--") else f"--output_dir {folder}/out"
    sandbox.main(f"{words} {SHORT} {warmup} {target}".split())


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_of_the_readme_writes_its_files(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(words, tmp_path)
    tables = {path.stem: pd.read_csv(path) for path in (tmp_path / "out").glob("*.csv")}
    assert set(tables) == set(COMMANDS[words])
    pictures = list((tmp_path / "out").glob("*.png"))
    assert len(pictures) == (len(tables) > 1)
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in pictures)
    for table in tables.values():
        assert {"step", "loss", "seed", "test_error", "entropy"} <= set(table)
        assert sorted(table["seed"].unique()) == [0, 1] and table["step"].max() == 3
    if pictures:
        combined = tables.pop(pictures[0].stem)
        assert len(combined) == sum(map(len, tables.values()))
        assert list(combined["variant"].unique()) != []


def test_the_sweeps_say_where_truncation_begins(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (words,) = (each for each in COMMANDS if "soft_teacher" in each)
    run(f"{words} --controls true", tmp_path)
    rows = pd.read_csv("out/soft_teacher_topk.csv")
    assert rows.loc[rows["is_switch"], "step"].eq(rows.loc[rows["is_switch"], "warmup_steps"]).all()
    switches = rows.groupby("variant")["is_switch"].sum()
    assert switches.pop("full_vocab_rkl") == 0 and set(switches) == {2}
    assert set(rows["objective"]) == {"full_vocab", "truncated", "renormalised", "tail", "forward"}
    assert set(rows.loc[rows["support"] == "full_vocab", "warmup_steps"]) == {-1}
    assert set(rows["teacher_temperature"]) == {1.0}
    warm = rows[rows["variant"] == "topk_student_k4_warm2"]
    assert list(warm["phase"].unique()) == ["full_vocab_rkl", "topk_student"]


@pytest.mark.parametrize("words", [MICROSCOPE])
def test_the_microscope_writes_the_originals_columns(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    short = "--reference_batches 2 --d_model 8 --batch_size 2 --horizons 2,6 --num_batches 2"
    sandbox.main(f"{words} {short} --verbose false".split())
    rows = pd.read_csv("opd_results/variance_microscope.csv")
    assert len(rows) == 2 * 3 * len(ESTIMATORS)
    assert set(rows["estimator"]) > {"sequence_pg", "token_pg", "full_vocab_rkl"}
    names = {"horizon", "seed", "estimator", "batch_size", "num_batches", "loss_mean"} | {
        f"{what}_{which}"
        for what in ("projection", "grad_norm")
        for which in ("mean", "var", "std")
    }
    assert names <= set(rows) and rows[list(names)].notna().all().all()
    assert (tmp_path / "opd_results/variance_microscope.png").exists()


@pytest.mark.parametrize("name", ["variance_microscope", *EXPERIMENTS])
def test_the_defaults_are_those_of_the_original(name, monkeypatch):
    read = []
    monkeypatch.setattr(opd.cli, "check_folder", lambda flag, folder: read.append(folder))
    monkeypatch.setattr(opd.cli, "prepare_torch", lambda device: stop())
    found = []

    def stop():
        raise InterruptedError

    given = opd.cli.read_flags

    def noted(*args):
        found.append(given(*args))
        return found[-1]

    monkeypatch.setattr(opd.cli, "read_flags", noted)
    for words in ([], DEFAULTS[name].split()):
        with pytest.raises(InterruptedError):
            opd.run(name, *words)
    model = MicroscopeSettings if name == "variance_microscope" else OpdSettings
    fixed = [opd.validate(model, opd.cli.of_model(model, each), "opd") for each in found]
    assert fixed[0] == fixed[1]
    if name in EXPERIMENTS:
        own = EXPERIMENTS[name].own
        first, other = (opd.validate(own, opd.cli.of_model(own, each), "opd") for each in found)
        assert first == other


def test_the_defaults_of_a_run_are_those_of_the_original():
    assert read_runs("opd", []) == read_runs("opd", DEFAULTS["train"].split())


def test_the_defaults_of_losses_are_those_of_the_original():
    words = RULE_DEFAULTS.split()
    given = dict(zip(words[::2], words[1::2], strict=True))
    for rule in RULES.values():
        for key, flag in flags_of(rule).items():
            assert str(rule.model_fields[key].default) == given[f"--{flag}"]


def test_flags_may_name_the_default_subcommand_and_be_hyphenated(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words in ("", "train"):
        sandbox.main(["opd", *f"{words} {SHORT} --seed 4 --eval-every=2".split()])
        rows = pd.read_csv("opd_results.csv")
        assert list(rows["seed"]) == [4, 5] * 3
    assert capsys.readouterr().out == ""
    sandbox.main(["--help"])
    assert "soft_teacher_topk" in capsys.readouterr().out
