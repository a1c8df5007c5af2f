"""A job's key: it changes with all that decides its result, and with nothing else."""

import shutil

import pytest
import yaml
from places import PROJECT
from stored_study import changed, keys, small_plan

from hgrpo.errors import UserError
from hgrpo.store import code
from hgrpo.store.plan import ASKED_FOR, STORE

CONFIG, REPORT = {"study_config"}, {"report"}
DRAWN = {"figures"} | REPORT
MERGED = {"merge"} | DRAWN
SFT_EVALUATIONS = {"evaluate SFTOnly 0 0"}
SFT = {"sft"} | SFT_EVALUATIONS
TRAINED = ("flatGRPO", "Progressive")


def rounds(methods=TRAINED, seeds=(11,), numbers=(1, 2), stage="rl_round") -> set[str]:
    return {
        f"{stage} {method} {seed} {number}"
        for method in methods
        for seed in seeds
        for number in numbers
    }


def evaluations(**selection) -> set[str]:
    return rounds(**selection, stage="evaluate")


def trained(**selection) -> set[str]:
    return rounds(**selection) | evaluations(**selection)


@pytest.fixture(scope="module")
def plan():
    """The study before any edit."""
    return small_plan()


def test_the_jobs_of_a_study(plan):
    data = {"assets", "expert", "base"}
    assert set(keys(plan)) == CONFIG | data | SFT | trained() | MERGED
    assert len(set(keys(plan).values())) == len(keys(plan))
    assert keys(small_plan()) == keys(plan)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"training.lr": "1e-4"}, trained() | MERGED),
        ({"methods.Progressive.alpha": "0.25"}, trained(methods=["Progressive"]) | MERGED),
        ({"methods.flatGRPO.training.lr": "1e-5"}, trained(methods=["flatGRPO"]) | MERGED),
        ({"methods.flatGRPO.label": "Flat"}, DRAWN),
        ({"sft.epochs": "9"}, SFT | trained() | MERGED),
        ({"evaluation.test_games": "90"}, SFT_EVALUATIONS | evaluations() | MERGED),
        ({"evaluation.confidence": "0.9"}, DRAWN),
        ({"evaluation.endpoint": "last_round"}, DRAWN),
        ({"evaluation.thresholds": "[0.5,0.6]"}, DRAWN),
        ({"resources.rl_round.threads": "2"}, REPORT),
        ({"description": "Other words"}, REPORT),
    ],
)
def test_a_setting_changes_the_keys_of_the_jobs_that_read_it(plan, changes, expected):
    assert changed(plan, small_plan(**changes)) == CONFIG | expected


def test_a_setting_of_the_environment_changes_all_that_plays(plan):
    again = changed(plan, small_plan(**{"env.kinds": "19"}))
    assert {"assets"} | SFT_EVALUATIONS | trained() | MERGED <= again


def test_more_rounds_and_seeds_keep_the_keys_of_the_others(plan):
    assert changed(plan, small_plan(rounds="3")) == CONFIG | trained(numbers=[3]) | MERGED
    # The SFT policy is evaluated once for every seed.
    assert changed(plan, small_plan(seeds="11,31")) == CONFIG | trained(seeds=[31]) | MERGED


def test_another_arm_keeps_the_keys_of_the_others(plan):
    more = small_plan(methods="SFTOnly,flatGRPO,Progressive,RandomCredit")
    assert changed(plan, more) == CONFIG | trained(methods=["RandomCredit"]) | MERGED


def test_studies_with_equal_arms_share_their_keys(plan, tmp_path):
    configs = tmp_path / "configs"
    shutil.copytree(PROJECT / "configs", configs)
    twin = yaml.safe_load((configs / "studies/smoke.yaml").read_bytes()) | {"name": "twin"}
    (configs / "studies/twin.yaml").write_text(yaml.safe_dump(twin), encoding="utf-8")
    other = small_plan("twin", configs, methods="SFTOnly,flatGRPO")
    assert changed(plan, other) == CONFIG | MERGED


@pytest.fixture
def edited(monkeypatch):
    """A function that returns the keys as if a module of the package had been edited."""
    read = code._read

    def planned(edited: str, **changes) -> dict[str, str]:
        def read_edited(name, path, package):
            digest, imports = read(name, path, package)
            return (f"edited {digest}" if name == edited else digest), imports

        assert code._path(edited, code.PACKAGE).is_file()
        with monkeypatch.context() as patch:
            patch.setattr(code, "_read", read_edited)
            return keys(small_plan(**changes))

    return planned


def different(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name, key in after.items() if key != before[name]}


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("stages.report", REPORT),
        ("report.figures.learning", DRAWN),
        ("learning.advantages", trained() | MERGED),
        ("credit.progress", trained(methods=["Progressive"]) | MERGED),
        ("rollout.torch.compiled", SFT_EVALUATIONS | trained() | MERGED),
        ("formulas.clip", trained() | MERGED),
        # Other rules, engines, environments and assigners; the sandbox; and what only plans.
        ("formulas.ratio_rules", set()),
        ("rollout.vllm.engine", set()),
        ("games.webshop.env", set()),
        ("credit.judge.scores", set()),
        ("sandbox.rl.train", set()),
        ("workflow.rules", set()),
        ("store.plan", set()),
        ("study.study", set()),
        ("stages.files", set()),
        ("provenance", set()),
    ],
)
def test_an_edit_changes_the_keys_of_the_jobs_that_run_it(plan, edited, module, expected):
    assert different(keys(plan), edited(f"hgrpo.{module}")) == expected


def test_an_edited_environment_changes_all_that_is_made_with_it(plan, edited):
    assert different(keys(plan), edited("hgrpo.games.chores")) == {*keys(plan)} - CONFIG


def test_an_edited_update_rule_changes_the_arms_that_name_it(edited):
    tpo = {"methods.flatGRPO.objective": "{rule: TPO, eta: 1.0}"}
    again = edited("hgrpo.formulas.tpo", **tpo)
    assert different(keys(small_plan(**tpo)), again) == trained(methods=["flatGRPO"]) | MERGED


def test_a_page_that_is_asked_for_has_its_place_in_the_plan():
    plan = small_plan(truth="{groups: 4}")
    stages = {planned.stage for planned in plan.jobs(asked_for=True)}
    assert {"truth_round", "credit_agreement", "viewer", "paper"} <= stages & ASKED_FOR
    assert ASKED_FOR.isdisjoint(planned.stage for planned in plan.jobs())


def test_files_of_the_study_in_the_store(plan):
    planned = plan.find("rl_round", "flatGRPO", 11, 2)
    name = "rl/flatGRPO/seed_11/round_2/summary.json"
    assert plan.stored(name) == f"{STORE}/{planned.key}/{name}"


@pytest.mark.parametrize(
    "path",
    [
        "rl/flatGRPO/seed_11/round_2",
        "rl/round_2/summary.json",
        "rl/flatGRPO/seed_11/round_3/summary.json",
        "rl/flatGRPO/seed_1/round_1/summary.json",
        "rl/PPO/seed_11/round_1/summary.json",
        "credit_fit/SFTOnly/seed_11/round_1/model.json",
        "eval/flatGRPO/seed_0/round_1/summary.json",
        "gradients/flatGRPO/seed_11/round_0/summary.json",
        "truth/round_1/summary.json",
        "report/reprot.html",
    ],
)
def test_a_file_of_no_job_of_the_study_is_named(plan, path):
    message = f"^results/smoke/{path}: no job of this study makes this file$"
    with pytest.raises(UserError, match=message):
        plan.stored(path)
