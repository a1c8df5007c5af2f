"""Targets by name and by path: waves, axes, pages, and files below results/<study>."""

import os
import re
import subprocess
import sys

import pytest


def rounds(messages):
    """Methods that a plan trains."""
    return {message.split(",")[0] for message in messages if ": round " in message}


@pytest.mark.parametrize(
    ("words", "arms"),
    [
        (["smoke_wave", "study=alpha_sweep"], {"TurnRDV2"}),
        (
            ["rest_wave", "study=alpha_sweep"],
            {"flatGRPO", "TurnRDV2_a000", "TurnRDV2_a025", "TurnRDV2_a075"},
        ),
        # Without a smoke wave it is the reference.
        (["smoke_wave", "seeds=31"], {"flatGRPO"}),
        (["rest_wave", "seeds=31"], {"Progressive"}),
        (
            ["kl_sweep", "study=interventions", "methods=kl_0.001,kl_0.1,top_p_1"],
            {"kl_0.001", "kl_0.1"},
        ),
        (["kl_sweep", "study=interventions", "set=axes.kl.values=0,0.05"], {"PPO", "kl_0.05"}),
    ],
)
def test_part_of_a_study_runs_alone(finished, words, arms):
    assert rounds(finished.planned(*words)) == arms


PAGES = {
    "viewer": "Page of single trajectories",
    "paper": "Figures and tables for a paper",
    "credit_agreement": "Credit agreement",
}


def test_pages_run_only_as_targets_and_settle(checkout):
    checkout.edit("configs/studies/grid.yaml", "env:", "truth: {groups: 4}\nenv:")
    truth = {f"Ground-truth credit of the policy after round {number}" for number in (0, 1)}
    assert checkout.planned("truth") == truth
    # The paper shows the report's numbers, so the report comes first.
    report = {"Resolved configuration of the study", "Tables and the report"}
    assert checkout.planned("truth", *PAGES) == truth | set(PAGES.values()) | report
    done = checkout.snakemake("truth", *PAGES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert checkout.planned("truth", "credit_agreement") == set()
    assert {"viewer", "paper", "credit_agreement", "truth/round_0"} <= set(checkout.links())
    # The report shows the comparison from now on, and the paper shows the report's numbers.
    assert checkout.planned() == {"Tables and the report"}
    assert checkout.planned("all", "paper") == {"Tables and the report", PAGES["paper"]}
    again = checkout.snakemake("all", "paper")
    assert again.returncode == 0, again.stdout + again.stderr
    assert checkout.planned("all", "truth", "paper", "credit_agreement") == set()


@pytest.mark.parametrize("name", ["truth", "gradients"])
def test_a_study_without_the_section_of_a_target_names_it(finished, name):
    done = finished.snakemake("-n", name)
    lines = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert done.returncode == 1 and len(lines) == 1
    assert f"requires a section `{name}`" in lines[0]


def test_a_path_below_the_studys_results_is_a_target(checkout):
    place = "rl/Progressive/seed_11/round_2"
    target = f"results/grid/{place}/summary.json"
    assert checkout.planned(target) <= {f"{place}/summary.json"}
    checkout.edit("configs/methods/Progressive.yaml", "alpha: 0.5", "alpha: 0.25")
    both = {f"Progressive, seed 11: round {number}" for number in (1, 2)}
    before, key = (checkout.root / target).read_bytes(), checkout.links()[place]
    assert checkout.planned(target) - {f"{place}/summary.json"} == both
    done = checkout.snakemake(target)
    assert done.returncode == 0, done.stdout + done.stderr
    assert checkout.links()[place] != key
    # The older result stays as it was.
    assert (checkout.root / f"results/store/{key}/{place}/summary.json").read_bytes() == before
    assert not checkout.planned(target) & both


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("rl/flatGRPO/seed_11/round_3/summary.json", []),
        ("rl/flatGRPO/seed_31/round_1/summary.json", []),
        ("rl/PPO/seed_11/round_1/summary.json", []),
        ("rl/flatGRPO/seed_11/round_1/summary.json", ["methods=SFTOnly"]),
        ("report/reprot.html", []),
    ],
)
def test_a_file_that_the_study_does_not_have_is_named(finished, path, words):
    done = finished.snakemake("-n", f"results/grid/{path}", *words)
    lines = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert done.returncode == 1
    assert lines == [f"error: results/grid/{path}: no job of this study makes this file"]


def test_figures_are_drawn_again_with_force(finished):
    assert finished.planned("figures") == set()
    assert finished.planned("figures", "-R", "figures") == {"Figures"}


def test_a_run_ends_with_the_headline_of_its_report(checkout):
    (checkout.root / "results/grid/report/headline.log").unlink(missing_ok=True)
    done = checkout.snakemake("--quiet", "host", "reason")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No arm differs." in (done.stdout + done.stderr).splitlines()


@pytest.mark.parametrize("begun", [False, True])
def test_the_graph_of_rules_leads_through_the_report(checkout, begun):
    if not begun:
        (checkout.root / "results").rename(checkout.root / "aside")
    done = checkout.snakemake("--rulegraph", "mermaid-js")
    names = dict(re.findall(r"(id\d+)\[(\w+)\]", done.stdout))
    arrows = {(names[a], names[b]) for a, b in re.findall(r"(id\d+) --> (id\d+)", done.stdout)}
    assert {a for a, b in arrows if b == "all"} == {"report"}
    if not begun:
        assert {("sft", "rl_round"), ("rl_round", "evaluate"), ("merge", "report")} <= arrows


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
    assert "Games and panels" not in planned()
    assert "Games and panels" in planned("--directory", ".")
    assert not list(elsewhere.glob("results/store/*/made.json"))
