"""The plan as a whole: sums by stage and arm, minutes, judges' calls."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from places import PROJECT

from hgrpo.cli.plan import report, service_call_lines
from hgrpo.stages.job import Job
from hgrpo.store.plan import Plan, Planned
from hgrpo.study.resources import StageResources
from hgrpo.study.study import load_study
from hgrpo.workflow.planning.estimates import Estimate, Estimates
from hgrpo.workflow.planning.forecast import Forecast, forecasts, wall_minutes
from hgrpo.workflow.planning.machine_speed import MachineSpeed
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
SPEED = MachineSpeed(0.0005, 0.0007, True)


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
    return forecasts(plan, Estimates(plan, dict(past), SPEED), profile.cores, to_run)


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


BUCKET = Profile(Path("profiles/kubernetes"), cores=None, in_bucket=True)
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


ROUND = ("flatGRPO", 5400, 2_000_000_000)


def test_hours_money_and_disk_of_the_jobs_to_run(planned):
    lines = planned(CLUSTER, sft=(None, 100, 50), rl_round=ROUND, evaluate=("SFTOnly", 3600, 1000))
    # A round takes 1.5 h of 2 cores and 1 GPU: 1.5 * (2 * 0.1 + 2) = 3.30 dollars. An arm also has
    # two evaluations, which are there.
    assert cells(lines, "flatGRPO") == ["4", "3", "1", "3.00", "1.50", "3.30", "2.0", "GB"]
    # Two of them in an arm that has none of its own, which the mark says.
    assert cells(lines, "Progressive") == ["4", "2", "2", "6.00", "3.00", "6.60", "4.0", "GB", "+"]
    assert cells(lines, "rl_round") == [*"413", "5,400.0", "9.00", "4.50", "9.90", "6.0", "GB", "+"]
    assert cells(lines, "shared") == ["8", "8", "0", "0", "0", "0.00", "0", "B"]
    assert cells(lines, "SFTOnly") == ["1", "0", "1", "1.00", "0", "0.10", "1.0", "kB"]
    assert cells(lines, "all") == ["17", "13", "4", "10.00", "4.50", "10.00", "6.0", "GB", "+"]
    # The chain of Progressive's two rounds; 100 jobs at a time do the rest beside it.
    assert "4 jobs to run, about 3.0 hours with 100 at a time, without waiting in queues" in lines
    assert "the disk: 60.00 dollars a month, not in the column above" in lines


def test_before_any_job_on_gpus_hours_and_money_are_a_ceiling(planned):
    lines = planned(CLUSTER)
    assert not any("?" in line for line in lines)
    # `runtime` is 90 minutes.
    assert cells(lines, "flatGRPO")[:6] == ["4", "3", "1", "3.00", "1.50", "3.30"]
    assert cells(lines, "flatGRPO")[-1] == "<"
    assert cells(lines, "SFTOnly")[3] == "0.5000"
    assert "4 jobs to run, at most 3.0 hours with 100 at a time, without waiting in queues" in lines
    assert any(line.startswith("< a ceiling") for line in lines)


def test_without_prices_there_is_no_money(planned):
    lines = planned(LAPTOP, rl_round=("flatGRPO", 60, 10))
    assert "dollars" not in lines[0] and lines[0].split()[-2:] == ["GPU-h", "disk"]
    assert "no money is shown: there is no profiles/laptop/prices.yaml" in "\n".join(lines)


def test_a_job_takes_no_more_cores_than_there_are(planned):
    past = {"rl_round": ("flatGRPO", 60, 10), "evaluate": ("SFTOnly", 120, 1000)}
    lines = planned(replace(LAPTOP, cores=1), **past)
    # A round asks for two threads and gets one: three rounds and an evaluation on one core.
    assert "4 jobs to run, about 5.0 minutes on 1 cores" in lines
    assert cells(lines, "flatGRPO")[3] == "0.0167"
    # Two threads each on a machine that has them, and half the evaluation.
    lines = planned(LAPTOP, **past)
    assert cells(lines, "flatGRPO")[3] == "0.0333"
    assert "4 jobs to run, about 4.0 minutes on 2 cores" in lines


def test_example_prices_are_called_that(planned):
    example = Prices(core_hour=1, gpu_hour=1, example=True)
    lines = planned(replace(CLUSTER, prices=example))
    assert any("profiles/slurm/prices.yaml are examples" in line for line in lines)
    assert not any("are examples" in line for line in planned(CLUSTER))


def smoke(**changes):
    return Plan(load_study(PROJECT / "configs/studies/smoke.yaml", changes))


def test_before_any_job_without_gpus_every_number_comes_from_reference_rates():
    plan = smoke()
    to_run = [plan.find("sft"), *_rounds(plan, ["flatGRPO"], [1, 2])]
    lines = report(plan.study, _expected(plan, to_run, LAPTOP), LAPTOP, {})
    assert not any("?" in line for line in lines)
    assert any(
        re.match(r"3 jobs to run, about \d+\.\d minutes on 2 cores$", line) for line in lines
    )
    assert "* in part from reference rates, scaled to this machine" in lines
    assert cells(lines, "flatGRPO")[-1] == "*"


def test_a_finished_study_has_nothing_to_run():
    plan = smoke()
    assert "nothing to run" in report(plan.study, _expected(plan, [], LAPTOP), LAPTOP, {})


@pytest.mark.parametrize("kind", ["torch", "vllm"])
def test_rounds_with_vllm_and_without_a_gpu_are_named(kind):
    plan = smoke(engine={"kind": kind})
    to_run = _rounds(plan, ["flatGRPO"], [1, 2])
    lines = report(plan.study, _expected(plan, to_run, LAPTOP), LAPTOP, {})
    assert any("asks for no GPU" in line for line in lines) == (kind == "vllm")


def test_a_plan_fits_on_a_page(planned):
    past = {
        "sft": (None, 100, 50),
        "evaluate": ("SFTOnly", 1, 1),
        "rl_round": ("flatGRPO", 5400, 9),
    }
    assert max(map(len, planned(CLUSTER, **past))) <= 100


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


def calls(plan, environment=(), profile=LAPTOP, numbers=(3, 4, 5)):
    """What is said of the services that the rounds to run call."""
    to_run = _rounds(plan, ["flatGRPO", "Judge"], numbers)
    expected = _expected(plan, to_run, profile)
    return service_call_lines(plan.study, expected, dict(environment), profile)


PAID = {"model": "gpt-4o-mini", "base_url": "https://api.openai.com/v1"}


def test_calls_of_a_judge_are_counted_for_the_rounds_to_run(judged):
    (line,) = calls(judged(**PAID))
    # 3 rounds of 6 steps of 32 tasks, 8 rollouts each.
    assert line.startswith("Judge: up to 4,608 calls to gpt-4o-mini at https://api.openai.com/v1")
    assert "max_calls 50000, max_dollars 5" in line
    assert line.endswith("OPENAI_API_KEY is not set")
    (known,) = calls(judged(**PAID), {"OPENAI_API_KEY": "k"})
    assert "OPENAI_API_KEY" not in known
    (group,) = calls(judged(**PAID, variant="group"))
    assert "up to 576 calls" in group


def test_the_offline_rubric_and_cached_rounds_call_nobody(judged):
    assert calls(judged()) == []
    assert calls(judged(**PAID), profile=BUCKET, numbers=()) == []


def test_a_plan_says_that_pods_share_no_account_of_calls(judged):
    assert read_profile(PROJECT / "profiles/kubernetes").in_bucket
    assert not read_profile(PROJECT / "profiles/slurm").in_bucket
    _, caps = calls(judged(**PAID), profile=BUCKET)
    assert caps == "these caps hold for one round of one seed each: pods share no account"


def forecast(stage, minutes, *job):
    planned = Planned(stage, Job(*job), "", "", {}, {})
    return Forecast(planned, True, Estimate(60 * minutes), Estimate(0), StageResources())


@pytest.mark.parametrize(
    ("name", "minutes"), [("smoke", 9 + 3 + 5 + 7), ("smollm2_cpu", 9 + 5 + 7)]
)
def test_a_pretrained_base_is_made_beside_the_demonstrations(project, name, minutes):
    study = load_study(project / f"configs/studies/{name}.yaml")
    stages = {"fetch_assets": 9, "base": 3, "expert": 5, "sft": 7, "credit_agreement": 60}
    expected = [forecast(*each) for each in stages.items()]
    assert wall_minutes(expected, study, Profile(project, cores=100)) == minutes


def test_shared_stages_come_before_and_after_the_runs(project):
    study = load_study(project / "configs/studies/bakeoff.yaml")
    expected = [forecast("sft", 5), forecast("report", 1)]
    expected += [
        forecast("rl_round", minutes, arm, 11, number)
        for arm, minutes in (("flatGRPO", 1), ("Vine", 4))
        for number in (1, 2)
    ]
    expected.append(forecast("evaluate", 10, "flatGRPO", 11, 1))
    # 2 * (1 + 4) + 10 on one core. On two cores flatGRPO's two rounds and its evaluation take 12.
    assert wall_minutes(expected, study, Profile(project, cores=1)) == 6 + 20
    assert wall_minutes(expected, study, Profile(project, cores=2)) == 6 + 12
