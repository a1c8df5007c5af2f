"""Targets by name: a study, the waves it is played in, and its figures."""

import os
import re
import subprocess
import sys

import pytest


def rounds(messages):
    """Methods that a plan trains."""
    return {message.split(",")[0] for message in messages if ": round " in message}


def test_the_waves_of_a_study_share_its_methods_out(finished):
    def wave(name):
        return rounds(finished.planned(name, "study=alpha_sweep"))

    assert wave("smoke_wave") == {"TurnRDV2"}
    assert wave("rest_wave") == {"flatGRPO", "TurnRDV2_a000", "TurnRDV2_a025", "TurnRDV2_a075"}


def test_without_a_smoke_wave_it_is_the_reference(checkout):
    checkout.edit("hgrpo/credit/flat.py", "import", "import os\nimport")
    checkout.edit("hgrpo/credit/progress.py", "import numpy", "import os\nimport numpy")
    assert rounds(checkout.planned("smoke_wave")) == {"flatGRPO"}
    assert rounds(checkout.planned("rest_wave")) == {"Progressive"}


@pytest.mark.parametrize(
    ("words", "arms"),
    [
        (["entropy_sweep"], {"PPO"} | {f"entropy_{x}" for x in (0.001, 0.003, 0.01, 0.03, 0.1, 3)}),
        # Without the reference.
        (["kl_sweep", "methods=kl_0.001,kl_0.1,top_p_1"], {"kl_0.001", "kl_0.1"}),
        (["kl_sweep", "set=axes.kl.values=0,0.05"], {"PPO", "kl_0.05"}),
        (["top_p_sweep", "methods=top_p_nofilter"], {"top_p_nofilter"}),
    ],
)
def test_the_arms_of_an_axis_run_alone(finished, words, arms):
    assert rounds(finished.planned(*words, "study=interventions", "seeds=11")) == arms


def test_an_axis_of_which_no_arm_was_chosen_is_named(finished):
    done = finished.snakemake("-n", "kl_sweep", "study=interventions", "methods=SFTOnly")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "error: kl_sweep: none of its arms is among the methods; it has PPO, kl_0.001, kl_0.003, "
        "kl_0.01, kl_0.03, kl_0.1"
    )


def test_a_study_is_a_target_by_its_name(finished):
    named = finished.snakemake("-n", "alpha_sweep", "study=alpha_sweep")
    assert named.returncode == 0
    assert re.search(r"^alpha_sweep +1$", named.stdout, re.MULTILINE)
    assert "Tables and the report" in named.stdout


def test_a_run_of_fewer_rounds_keeps_the_longer_report(checkout):
    page = checkout.root / "results/grid/report/report.html"
    before = page.read_bytes() + b"two rounds"
    page.write_bytes(before)
    done = checkout.snakemake("rounds=1")
    assert done.returncode == 0, done.stdout + done.stderr
    (kept,) = checkout.root.glob("results/grid/earlier_reports/*")
    assert "this run replaces results/grid/report/report.html by a report without round 2;" in (
        done.stderr
    )
    assert f"the earlier report is in {kept.relative_to(checkout.root)}\n" in done.stderr
    assert (kept / "report.html").read_bytes() == before != page.read_bytes()
    assert checkout.snakemake("rounds=2").returncode == 0
    assert list(checkout.root.glob("results/grid/earlier_reports/*")) == [kept]


def test_whoever_only_looks_trains_nothing(checkout):
    done = checkout.snakemake("viewer", "seeds=11,31")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "error: viewer: would have to train Progressive seed 31, flatGRPO seed 31; the last run of "
        "this study had seeds=11,23: add that to --config, or train with `make bakeoff STUDY=grid "
        'SEEDS="11 31"`'
    )
    assert not (checkout.root / "results/grid/rl/flatGRPO/seed_31").exists()
    done = checkout.snakemake("viewer", "seeds=11")
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == "viewer is in results/grid/viewer"
    (checkout.root / "results/grid/rl/flatGRPO/seed_11/round_1/turns.parquet").unlink()
    done = checkout.snakemake("viewer")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "error: viewer: would have to train flatGRPO seed 11; train first, with "
        "`make bakeoff STUDY=grid`"
    )
    # Asked for beside the report, the page may train.
    assert rounds(checkout.planned("report", "viewer")) == {"flatGRPO"}


def test_no_part_of_a_report_is_replaced_by_that_of_other_runs(checkout):
    made = checkout.root / "results/grid/report"
    before = {path: path.stat().st_mtime_ns for path in made.rglob("*") if path.is_file()}
    for given, last, again in (
        ("seeds=11", "seeds=11,23", "SEEDS=11"),
        (
            "set=evaluation.thresholds=[0.5]",
            'set="evaluation.thresholds=[]"',
            "SET='evaluation.thresholds=[0.5]'",
        ),
    ):
        done = checkout.snakemake("figures", given)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == (
            f"error: figures: the report of this study is of a run with {last}, and this command "
            "would put other numbers beside it; add that to --config, or make another report with "
            f"`make bakeoff STUDY=grid {again}`"
        )
    assert before == {path: path.stat().st_mtime_ns for path in made.rglob("*") if path.is_file()}
    said = checkout.snakemake("viewer", "seeds=11").stderr
    assert "viewer: of other runs than the report, which had seeds=11,23\n" in said


def test_figures_are_drawn_again_if_one_is_missing_or_with_force(checkout):
    index = checkout.root / "results/grid/report/figures/index.json"
    before = index.stat().st_mtime_ns
    assert checkout.planned("figures") == set()
    assert checkout.planned("-f", "figures") == {"Figures"}
    figure = next(index.parent.glob("*.svg"))
    figure.unlink()
    done = checkout.snakemake("figures")
    assert figure.exists()
    assert done.returncode == 0, done.stdout + done.stderr
    assert index.stat().st_mtime_ns > before
    # The same figures: the page need not be written again.
    assert checkout.planned() == set()


@pytest.mark.parametrize("begun", [False, True])
def test_the_graph_of_rules_leads_through_the_report(checkout, begun):
    if not begun:
        (checkout.root / "results").rename(checkout.root / "aside")
    done = checkout.snakemake("--rulegraph", "mermaid-js")
    names = dict(re.findall(r"(id\d+)\[(\w+)\]", done.stdout))
    arrows = {(names[a], names[b]) for a, b in re.findall(r"(id\d+) --> (id\d+)", done.stdout)}
    assert {a for a, b in arrows if b == "all"} == {"report"}
    assert {("sft", "rl_round"), ("rl_round", "evaluate"), ("merge", "report")} <= arrows


def test_a_run_names_its_target_in_one_short_line(checkout):
    (checkout.root / "results/grid/config.yaml").unlink()
    done = checkout.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^Job \d+: The whole study$", done.stderr, re.MULTILINE)
    assert max(map(len, done.stderr.splitlines())) < 1000


def test_results_stand_beside_the_snakefile_wherever_the_command_is_given(checkout, tmp_path):
    def planned(*options):
        words = ["--snakefile", "../checkout/Snakefile", *options, "--config", "study=grid"]
        done = subprocess.run(
            [sys.executable, "-m", "snakemake", "-n", *words],
            cwd=elsewhere,
            env=os.environ | {"PYTHONPATH": str(checkout.root)},
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        return done.stdout + done.stderr

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert "Nothing to be done" in planned()
    assert "Job 0: Figures" in planned("-f", "figures")
    assert "Games and panels" in planned("--directory", ".")
    assert not list(elsewhere.glob("results"))
