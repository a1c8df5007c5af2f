"""The commands of the original's readme, shortened by further flags, and the files they write."""

import pandas as pd
import pytest

from hgrpo.cli import sandbox
from hgrpo.sandbox.opd.microscope.estimators import ESTIMATORS

# What follows `python -m opd_sandbox.` there follows `python -m hgrpo.cli.sandbox opd ` here,
# without `train` or `experiments.`.
COMMANDS = {
    "--task reversal --method OPDReverseKL --batch_size 64 --num_steps 300 --eval_every 20": (),
    "--task reversal --method OPDPG --batch_size 64 --num_steps 300 --eval_every 20": (),
    "compare --task reversal --batch_size 64 --num_steps 300 --eval_every 20 --num_seeds 3": (
        *("reversal_OPDReverseKL", "reversal_OPDPG", "reversal_opd_compare"),
    ),
    "topk_stability --top_ks 1,2,4 --num_steps 300 --num_seeds 3": (
        *("topk_stability", "topk_stability_full_vocab_rkl", "topk_stability_sampled_pg"),
        *(f"topk_stability_topk_rkl_k{k}" for k in (1, 2, 4)),
    ),
    "topk_cold_start --top_ks 1,2,4 --num_steps 300 --warmup_steps 100 --num_seeds 3": (
        *("topk_cold_start", "topk_cold_start_full_vocab_rkl"),
        *(f"topk_cold_start_{heat}_topk_k{k}" for heat in ("cold", "warm") for k in (1, 2, 4)),
    ),
    "topk_warmup_sweep --top_ks 4,8 --warmup_steps 0,50,100,150,200,250 --num_steps 300 "
    "--num_seeds 3": (
        *("topk_warmup_sweep", "topk_warmup_sweep_full_vocab_rkl"),
        *(f"topk_warmup_sweep_topk_k{k}_warm{step}" for k in (4, 8) for step in (0, 2)),
    ),
    "soft_teacher_topk --top_ks 4 --supports student,teacher,intersection "
    "--warmup_steps 0,100,200,250 --num_steps 300 --num_seeds 3": (
        *("soft_teacher_topk", "soft_teacher_topk_full_vocab_rkl"),
        *(
            f"soft_teacher_topk_topk_{support}_k4_warm{step}"
            for support in ("student", "teacher", "intersection")
            for step in (0, 2)
        ),
    ),
}
SHORT = "--num_steps 3 --num_seeds 2 --seq_len 3 --d_model 8 --batch_size 8 --verbose false"
WARMUPS = {"topk_cold_start": "1", "topk_warmup_sweep": "0,2", "soft_teacher_topk": "0,2"}


def run(words, folder):
    name = words.split()[0]
    warmup = f"--warmup_steps {WARMUPS[name]}" if name in WARMUPS else ""
    target = "--output out/rows.csv" if name.startswith("--") else f"--output_dir {folder}/out"
    sandbox.main(["opd", *f"{words} {SHORT} {warmup} {target}".split()])


@pytest.mark.parametrize("words", list(COMMANDS), ids=lambda words: words.split()[0])
def test_a_command_of_the_readme_writes_its_files(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(words, tmp_path)
    tables = {path.stem: pd.read_csv(path) for path in (tmp_path / "out").glob("*.csv")}
    assert set(tables) == set(COMMANDS[words] or ("rows",))
    pictures = list((tmp_path / "out").glob("*.png"))
    assert len(pictures) == (words[:2] != "--")
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
    (words,) = (each for each in COMMANDS if each.startswith("soft_teacher"))
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


def test_the_microscope_writes_the_originals_columns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    short = "--reference_batches 2 --d_model 8 --batch_size 2 --verbose false"
    words = f"variance_microscope --horizons 4,8,16,32 --num_batches 40 --num_seeds 3 {short}"
    sandbox.main(["opd", *words.split(), "--horizons", "2,6", "--num_batches", "2"])
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


def test_flags_may_name_the_default_subcommand_and_be_hyphenated(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words in ("", "train"):
        sandbox.main(["opd", *f"{words} {SHORT} --seed 4 --eval-every=2".split()])
        rows = pd.read_csv("opd_results.csv")
        assert list(rows["seed"]) == [4, 5] * 3
    assert capsys.readouterr().out == ""
    with pytest.raises(SystemExit):
        sandbox.main(["opd", "--help"])
    assert "soft_teacher_topk" in capsys.readouterr().out
