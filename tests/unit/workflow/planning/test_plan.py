"""The plan as a whole: sums by stage and arm, minutes, judges' calls."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from places import PROJECT

from hgrpo.cli.plan import report, service_call_lines
from hgrpo.stages.paths import Job
from hgrpo.store.plan import STORE, Plan, Planned
from hgrpo.study.resources import StageResources
from hgrpo.study.study import load_study
from hgrpo.workflow.planning.estimates import Estimate, Estimates
from hgrpo.workflow.planning.forecast import Forecast, forecasts, wall_minutes
from hgrpo.workflow.planning.profile import Prices, Profile, read_profile

STUDY = {
    "name": "mine",
    "env": "alfworld-laptop",
    "model": "tiny",
    "methods": ["SFTOnly", "flatGRPO", "Progressive"],
    "rounds": 2,
    "resources": {
        "sft": {"threads": 4},
        "rl_round": {"threads": 2, "gpu": 1, "runtime": 90},
        "evaluate": {"runtime": 30},
    },
}


@pytest.fixture
def configs(project, tmp_path) -> Path:
    """Folder of configs with no study in it."""
    for part in ("envs", "methods", "models"):
        (tmp_path / part).symlink_to(project / "configs" / part)
    (tmp_path / "studies").mkdir()
    return tmp_path


def _rounds(plan, arms, numbers):
    return [plan.find("rl_round", arm, 11, number) for arm in arms for number in numbers]


def _expected(plan, to_run, profile, past=()):
    return forecasts(plan, Estimates(plan, dict(past), True), profile.cores, to_run)


@pytest.fixture
def planned(configs):
    """Lines of a plan: the SFT policy is there, and the first round of one arm.

    `past` holds (seconds, bytes) of past jobs by stage and arm.
    """
    path = configs / "studies/mine.yaml"
    path.write_text(yaml.safe_dump(STUDY), encoding="utf-8")
    plan = Plan(load_study(path))
    to_run = _rounds(plan, ["flatGRPO", "Progressive"], [1, 2])[1:]
    to_run.append(plan.find("evaluate", "SFTOnly", 0, 0))

    def lines(profile: Profile, **past: tuple[str | None, float, float]) -> list[str]:
        known = {
            (stage, plan.parts(stage, arm)["settings"]): [(seconds, size)]
            for stage, (arm, seconds, size) in past.items()
        }
        return report(plan.study, _expected(plan, to_run, profile, known), profile, {})

    return lines


LAPTOP = Profile(Path("profiles/laptop"), cores=2)
CLUSTER = Profile(
    Path("profiles/slurm"),
    cores=None,
    jobs=100,
    prices=Prices(core_hour=0.1, gpu_hour=2, disk_gb_month=10),
)


def cells(lines, label):
    (line,) = (line for line in lines if line.startswith(f"{label} "))
    return line.split()[1:]


def test_hours_money_and_disk_of_the_jobs_to_run(planned):
    past = {"sft": (None, 100, 50), "rl_round": ("flatGRPO", 5400, 2_000_000_000)}
    lines = planned(CLUSTER, **past, evaluate=("SFTOnly", 3600, 1000))
    # A round takes 1.5 h of 2 cores and 1 GPU: 1.5 * (2 * 0.1 + 2) = 3.30 dollars. An arm also has
    # two evaluations, which are there.
    assert cells(lines, "flatGRPO") == [*"431", "5,400.0", "3.00", "1.50", "3.30", "2.00GB"]
    # Progressive has no jobs of its own, which the mark shows.
    two_rounds = ["6.00", "3.00", "6.60", "4.00GB", "+"]
    assert cells(lines, "Progressive") == [*"422", "5,400.0", *two_rounds]
    assert cells(lines, "rl_round") == [*"413", "5,400.0", "9.00", "4.50", "9.90", "6.00GB", "+"]
    assert cells(lines, "shared") == [*"880-00", "0.00", "0.00B"]
    assert cells(lines, "SFTOnly") == [*"101", "3,600.0", "1.00", "0", "0.10", "1.00kB"]
    totals = ["17", "13", "4", "4,950.0", "10.00", "4.50", "10.00", "6.00GB", "+"]
    assert cells(lines, "all") == totals
    # The chain of Progressive's two rounds; 100 jobs at a time do the rest beside it.
    assert "4 jobs to run, about 3.0 hours with 100 at a time, without queueing time" in lines
    assert "disk: 60.00 dollars per month, not included above" in lines
    assert not any("are examples" in line for line in lines)
    assert max(map(len, lines)) <= 100


def test_before_any_job_on_gpus_hours_and_money_are_a_ceiling(planned):
    example = Prices(core_hour=0.1, gpu_hour=2, example=True)
    lines = planned(replace(CLUSTER, prices=example))
    # `runtime` is 90 minutes.
    assert cells(lines, "flatGRPO")[:7] == [*"431", "5,400.0", "3.00", "1.50", "3.30"]
    assert cells(lines, "flatGRPO")[-1] == "<"
    assert "4 jobs to run, at most 3.0 hours with 100 at a time, without queueing time" in lines
    assert any(line.startswith("< upper bound") for line in lines)
    assert any("profiles/slurm/prices.yaml are examples" in line for line in lines)


def test_a_job_takes_no_more_cores_than_there_are(planned):
    past = {"rl_round": ("flatGRPO", 60, 10), "evaluate": ("SFTOnly", 120, 1000)}
    lines = planned(replace(LAPTOP, cores=1), **past)
    # A round asks for two threads and gets one: three rounds and an evaluation on one core.
    assert "4 jobs to run, about 5.0 minutes on 1 cores" in lines
    assert cells(lines, "flatGRPO")[4] == "0.0167"
    # Two threads each on a machine that has them, and half the evaluation.
    lines = planned(LAPTOP, **past)
    assert cells(lines, "flatGRPO")[4] == "0.0333"
    assert "4 jobs to run, about 4.0 minutes on 2 cores" in lines
    assert "dollars" not in lines[0]
    assert "no costs shown: profiles/laptop/prices.yaml does not exist" in "\n".join(lines)


def test_a_finished_study_has_nothing_to_run():
    plan = Plan(load_study(PROJECT / "configs/studies/smoke.yaml"))
    assert "nothing to run" in report(plan.study, _expected(plan, [], LAPTOP), LAPTOP, {})


@pytest.fixture
def judged(configs):
    """Loads a study of the arm Judge, with changes to its credit."""

    def load(**credit):
        path = configs / "studies/mine.yaml"
        judge = {"of": "LLMJudge", "label": "a judge", "credit": credit}
        text = {"name": "mine", "env": "alfworld-laptop", "model": "tiny", "rounds": 5}
        text |= {"methods": ["flatGRPO", "Judge"], "variants": {"Judge": judge}}
        path.write_text(yaml.safe_dump(text), encoding="utf-8")
        return Plan(load_study(path))

    return load


def calls(plan, environment=(), numbers=(3, 4, 5)):
    """Lines on the services that the rounds to run call."""
    to_run = _rounds(plan, ["flatGRPO", "Judge"], numbers)
    return service_call_lines(plan.study, _expected(plan, to_run, LAPTOP), dict(environment))


PAID = {"model": "gpt-4o-mini", "base_url": "https://api.openai.com/v1"}


def test_calls_of_a_judge_are_counted_for_the_rounds_to_run(judged):
    (line,) = calls(judged(**PAID))
    # 3 rounds of 6 steps of 32 tasks, 8 rollouts each.
    assert line.startswith("Judge: up to 4,608 calls to gpt-4o-mini at https://api.openai.com/v1")
    assert "max_calls 50000, max_dollars 5" in line
    assert line.endswith("OPENAI_API_KEY is not set")
    (with_key,) = calls(judged(**PAID), {"OPENAI_API_KEY": "k"})
    assert "OPENAI_API_KEY" not in with_key
    (group,) = calls(judged(**PAID, variant="group"))
    assert "up to 576 calls" in group
    assert calls(judged(**PAID), numbers=()) == calls(judged()) == []


def test_results_in_a_bucket_are_known_by_the_profile():
    assert read_profile(PROJECT / "profiles/kubernetes").in_bucket
    assert not read_profile(PROJECT / "profiles/slurm").in_bucket


def test_shared_stages_come_before_and_after_the_runs():
    def forecast(stage, minutes, *job, after=()):
        name = " ".join(map(str, (stage, *job)))
        inputs = {"files": [f"{STORE}/{key}/file" for key in after]}
        planned = Planned(stage, Job(*job), name, "", inputs, {})
        return Forecast(planned, True, Estimate(60 * minutes), Estimate(0), StageResources())

    expected = [forecast("sft", 5), forecast("report", 1)]
    for arm, minutes in (("flatGRPO", 1), ("Vine", 4)):
        expected += [
            forecast("rl_round", minutes, arm, 11, 2, after=[f"rl_round {arm} 11 1"]),
            forecast("rl_round", minutes, arm, 11, 1),
        ]
    expected.append(forecast("evaluate", 10, "flatGRPO", 11, 2, after=["rl_round flatGRPO 11 2"]))
    # 2 * (1 + 4) + 10 on one core. On two cores flatGRPO's two rounds and its evaluation take 12.
    assert wall_minutes(expected, Profile(PROJECT, cores=1)) == 6 + 20
    assert wall_minutes(expected, Profile(PROJECT, cores=2)) == 6 + 12
