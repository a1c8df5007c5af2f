"""Jobs that run only if they are targets: truth, gradients and the comparison of credit."""

import pytest
from places import PROJECT
from stored_study import finish, small_plan

from hgrpo.store.plan import Plan, flat
from hgrpo.study.study import load_study

TRUTH = {"truth": "{groups: 4}"}
GRADIENTS = {"gradients": "{after_rounds: [0, 2], groups: 8, buckets: 2}"}
GRADIENTS |= {"env.panels.analysis": "8"}


def of_stage(plan, stage: str) -> dict[tuple, str]:
    """(method, round) -> key, of the jobs of a stage."""
    jobs = plan.jobs(asked_for=True)
    return {(p.job.method, p.job.round): p.key for p in jobs if p.stage == stage}


def test_truth_is_a_job_for_each_policy_and_changes_with_its_settings():
    before = of_stage(small_plan(**TRUTH), "truth_round")
    assert set(before) == {("", 0), ("", 1)}
    after = of_stage(small_plan(truth="{groups: 5}"), "truth_round")
    assert all(after[job] != before[job] for job in before)


def test_only_the_policy_that_changed_is_measured_again():
    before = of_stage(small_plan(**TRUTH), "truth_round")
    edited = small_plan(**TRUTH, **{"methods.flatGRPO.training.lr": "1e-4"})
    after = of_stage(edited, "truth_round")
    assert after["", 0] == before["", 0] and after["", 1] != before["", 1]
    # The truth is of the reference's policies.
    other = small_plan(**TRUTH, **{"methods.Progressive.alpha": "0.25"})
    assert of_stage(other, "truth_round") == before


def test_other_buckets_are_measured_anew_and_no_policy_is_trained_again():
    before = small_plan(**GRADIENTS)
    after = small_plan(**GRADIENTS | {"gradients.buckets": "3"})
    assert set(of_stage(before, "gradients_round")) == {
        (arm, round) for arm in ("flatGRPO", "Progressive") for round in (0, 2)
    }
    for stage, same in (("gradients_round", False), ("gradients_page", False), ("rl_round", True)):
        one, other = of_stage(before, stage), of_stage(after, stage)
        assert all((one[job] == other[job]) == same for job in one), stage


def agreement(**changes) -> str:
    return small_plan(**changes).find("credit_agreement").key


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"methods.Progressive.label": "Progress"}, False),
        ({"methods.flatGRPO.training.lr": "1e-4"}, False),
        ({"evaluation.test_games": "90"}, True),
    ],
)
def test_the_comparison_of_credit_changes_with_what_it_reads(changes, same):
    assert (agreement() == agreement(**changes)) == same


@pytest.mark.parametrize(("rounds", "fitted"), [("1", False), ("2", True), ("3", True)])
def test_a_learnt_assigner_is_compared_after_the_fit_on_its_first_round(rounds, fitted):
    planned = small_plan(methods="flatGRPO,TurnRDV2", rounds=rounds).find("credit_agreement")
    paths = flat(planned.inputs)
    assert any("credit_fit/TurnRDV2/seed_11/round_1/" in path for path in paths) == fitted
    assert not any("credit_fit/TurnRDV2/seed_11/round_2/" in path for path in paths)


def parts(plan, stage: str) -> set[str]:
    """The folders, relative to results/<study>, that a job of a stage reads."""
    return {path.split("/", 3)[3].rpartition("/")[0] for path in flat(plan.find(stage).inputs)}


def test_the_comparison_waits_for_the_truth_of_a_study_that_asks_for_it():
    truth = {"truth/round_0", "truth/round_1"}
    assert truth <= parts(small_plan(**TRUTH), "credit_agreement")
    assert not truth & parts(small_plan(), "credit_agreement")


def test_a_finished_comparison_is_part_of_the_report_and_of_the_viewer():
    plan = small_plan(**TRUTH)
    before = {stage: plan.find(stage).key for stage in ("report", "viewer", "figures")}
    assert not any("credit_agreement" in parts(plan, stage) for stage in before)
    finish(plan, [plan.find("truth_round", "", 0, number) for number in (0, 1)])
    finish(plan, [plan.find("credit_agreement")])
    again = small_plan(**TRUTH)
    for stage in ("report", "viewer"):
        assert again.find(stage).key != before[stage]
        assert "credit_agreement" in parts(again, stage)
    assert again.find("figures").key == before["figures"]


def test_a_changed_value_of_an_axis_makes_its_arm_anew_and_no_other():
    def arms(values: str) -> dict[str, str]:
        changes = {"axes.kl.values": values, "seeds": "11"}
        plan = Plan(load_study(PROJECT / "configs/studies/interventions.yaml", changes))
        return {job[0]: key for job, key in of_stage(plan, "rl_round").items() if job[1] == 1}

    before, after = arms("0,0.05"), arms("0,0.07")
    assert set(after) - set(before) == {"kl_0.07"}
    assert all(after[arm] == before[arm] for arm in set(after) & set(before))
