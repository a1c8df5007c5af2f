"""When `snakemake credit_agreement` runs, and on what: one job, of the assigners it compares."""

import shutil

import pytest

AGREEMENT = {"Credit agreement"}
FOLDER = "results/grid/credit_agreement"


@pytest.fixture(scope="module")
def compared(finished, tmp_path_factory):
    """The finished study, compared; tests that edit it take a copy."""
    root = tmp_path_factory.mktemp("compared") / "checkout"
    shutil.copytree(finished.root, root, symlinks=True)
    checkout = type(finished)(root, finished.forks)
    assert checkout.planned("credit_agreement") == AGREEMENT
    done = checkout.snakemake("credit_agreement")
    assert done.returncode == 0, done.stdout + done.stderr
    return checkout


@pytest.fixture
def checkout(compared, tmp_path):
    root = tmp_path / "checkout"
    shutil.copytree(compared.root, root, symlinks=True)
    return type(compared)(root, compared.forks)


def test_it_is_one_job_that_settles_and_is_no_part_of_the_report(compared):
    assert compared.planned("credit_agreement") == set()
    assert compared.planned() == set()


def test_arms_that_are_one_method_are_part_of_the_report(checkout):
    append(checkout, f"{FOLDER}/twins.csv", "method_a\nflatGRPO\n")
    assert checkout.planned() == {"Tables and the report"}


def test_an_edited_assigner_is_compared_again(checkout):
    # The report would play this arm's rounds again; the comparison uses rounds of flatGRPO.
    append(checkout, "hgrpo/credit/progress.py", "FLOOR = 1e-6\n")
    assert checkout.planned("credit_agreement") == AGREEMENT


def test_an_assigner_outside_the_study_changes_nothing(checkout):
    for name in ("counterfactual", "judge/scores", "turnrd/model", "state_graph/values"):
        append(checkout, f"hgrpo/credit/{name}.py", "FLOOR = 1e-6\n")
    assert checkout.planned("credit_agreement") == set()


def test_edited_credit_settings_and_labels_are_compared_again(checkout):
    checkout.edit("configs/methods/Progressive.yaml", "label: Progressive", "label: Progress")
    assert checkout.planned("credit_agreement") == AGREEMENT


def test_what_advantages_are_made_of_is_compared_again(checkout):
    checkout.edit("configs/methods/Progressive.yaml", "alpha: 0.5", "alpha: 0.25")
    assert checkout.planned("credit_agreement") == AGREEMENT


def test_what_no_assigner_reads_changes_nothing(checkout):
    append(checkout, "configs/studies/grid.yaml", "evaluation: {test_games: 400}\n")
    assert checkout.planned("credit_agreement") == set()


def test_a_deleted_picture_is_drawn_again(checkout):
    (checkout.root / FOLDER / "gallery.svg").unlink()
    assert checkout.planned("credit_agreement") == AGREEMENT


def test_other_rollouts_are_compared_again(checkout):
    path = checkout.root / "results/grid/rl/flatGRPO/seed_11/round_2/turns.parquet"
    path.write_text("other turns\n", encoding="utf-8")
    assert checkout.planned("credit_agreement") == AGREEMENT


@pytest.mark.parametrize(("rounds", "fits"), [(1, 0), (2, 1), (3, 1)])
def test_a_learnt_assigner_is_fitted_on_its_first_round(compared, rounds, fits):
    planned = compared.planned("credit_agreement", "methods=flatGRPO,TurnRDV2", f"rounds={rounds}")
    fitted = {
        "TurnRDV2, seed 11: round 1",
        "TurnRDV2, seed 11: credit fit after round 1",
    }
    assert planned == AGREEMENT | (fitted if fits else set())


def append(checkout, name: str, text: str) -> None:
    with (checkout.root / name).open("a", encoding="utf-8") as handle:
        handle.write(text)
