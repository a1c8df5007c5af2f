"""When truth is measured, and for which policies."""

import re

import pytest

TRUTH = {f"Truth of the policy after round {round}" for round in (0, 1)}


@pytest.fixture(scope="module")
def asked(finished, tmp_path_factory):
    checkout = finished.copy(tmp_path_factory.mktemp("truth") / "checkout")
    with (checkout.root / "configs/studies/grid.yaml").open("a", encoding="utf-8") as handle:
        handle.write("truth: {groups: 4}\n")
    done = checkout.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    return checkout


@pytest.fixture
def asking(asked, tmp_path):
    """The finished study, which now asks for truth."""
    return asked.copy(tmp_path / "checkout")


def test_it_is_a_job_for_each_policy_that_settles_and_is_no_part_of_the_report(asking):
    assert asking.planned("truth") == TRUTH
    done = asking.snakemake("truth")
    assert done.returncode == 0, done.stdout + done.stderr
    assert asking.planned("truth") == asking.planned() == set()
    # More groups are measured anew; the report shows the study's settings, so it is written again.
    asking.edit("configs/studies/grid.yaml", "groups: 4", "groups: 5")
    assert asking.planned("truth") == TRUTH


def test_only_the_policy_that_changed_is_measured_again(asking):
    assert asking.snakemake("truth").returncode == 0
    weights = "results/grid/rl/flatGRPO/seed_11/round_1/adapter/model.safetensors"
    (asking.root / weights).write_text("other weights\n", encoding="utf-8")
    assert asking.planned("truth") == {"Truth of the policy after round 1"}


def test_a_study_that_asks_for_none_plans_none(checkout):
    assert checkout.planned() == set()
    done = checkout.snakemake("-n", "truth")
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert said == ["error: grid: no section `truth`; `truth: {}` in its file measures it"]


@pytest.mark.parametrize(
    ("truth", "expected"),
    [
        ("{continuations: 1}", r"truth\.continuations: .*greater than or equal to 2"),
        ("{after_rounds: [0, 3]}", r"truth\.after_rounds: 3: the study has 2 rounds"),
        ("{after_rounds: [1, 0]}", r"truth\.after_rounds: .*in rising order"),
        ("{groups: 100000}", r"truth\.groups: 100000 games are wanted, but the train panel of env"),
    ],
)
def test_a_study_that_asks_for_too_much_is_refused(checkout, truth, expected):
    with (checkout.root / "configs/studies/grid.yaml").open("a", encoding="utf-8") as handle:
        handle.write(f"truth: {truth}\n")
    done = checkout.snakemake("-n", "truth")
    said = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert done.returncode == 1 and len(said) == 1
    assert re.search(expected, said[0]), said


def test_a_round_that_is_not_played_has_no_truth(asking):
    done = asking.snakemake("results/grid/truth/round_7/truth.parquet")
    assert done.returncode == 1 and not (asking.root / "results/grid/truth").exists()


@pytest.mark.slow
def test_the_comparison_of_credit_waits_for_the_truth(asking):
    assert asking.planned("credit_agreement") == {"Credit agreement"} | TRUTH
    done = asking.snakemake("credit_agreement")
    assert done.returncode == 0, done.stdout + done.stderr
    assert asking.planned("credit_agreement") == set()
    # The page shows the comparison from now on, and asks for no truth of its own.
    assert asking.planned() == {"Tables and the report"}
    assert asking.snakemake().returncode == 0
    assert asking.planned() == set()
    # What makes advantages of credit counts, because they are compared with the truth too.
    asking.edit("configs/methods/Progressive.yaml", "alpha: 0.5", "alpha: 0.25")
    assert asking.planned("credit_agreement") == {"Credit agreement"}
