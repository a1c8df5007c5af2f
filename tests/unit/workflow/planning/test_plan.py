"""The plan as a whole: jobs from Snakemake's own table, sums by stage and arm, judges' calls."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from places import PROJECT

from hgrpo.cli.plan import report, service_call_lines
from hgrpo.errors import UserError
from hgrpo.study.resources import StageResources
from hgrpo.study.study import load_study
from hgrpo.workflow.planning.estimates import Estimate, Estimates
from hgrpo.workflow.planning.forecast import Forecast, forecasts, wall_minutes
from hgrpo.workflow.planning.jobs import Job, benchmark_of, read_jobs, snakemake_summary
from hgrpo.workflow.planning.machine_speed import MachineSpeed
from hgrpo.workflow.planning.profile import Prices, Profile, read_profile

SUMMARY = "\n".join(
    "\t".join(row)
    for row in [
        ("output_file", "date", "rule", "log-file(s)", "status", "plan"),
        ("results/s/config.yaml", "d", "study_config", "l", "ok", "no update"),
        ("results/s/sft/adapter/model.safetensors", "d", "sft", "l", "ok", "no update"),
        ("results/s/sft/summary.json", "d", "sft", "l", "ok", "no update"),
        ("results/s/rl/A/seed_1/round_1/adapter/w", "d", "rl_round", "l", "ok", "no update"),
        ("results/s/rl/A/seed_1/round_1/turns.parquet", "d", "rl_round", "l", "ok", "no update"),
        ("results/s/rl/A/seed_1/round_2/adapter/w", "-", "rl_round", "-", "-", "update pending"),
        ("results/s/rl/A/seed_1/round_2/turns", "-", "rl_round", "-", "-", "update pending"),
    ]
)


def test_a_job_is_counted_once_whatever_it_writes():
    assert read_jobs(SUMMARY) == [
        Job("study_config", "results/s", False),
        Job("sft", "results/s/sft", False),
        Job("rl_round", "results/s/rl/A/seed_1/round_1", False),
        Job("rl_round", "results/s/rl/A/seed_1/round_2", True),
    ]


@pytest.mark.parametrize("root", ["results/s", "s3://bucket/hgrpo/results/s"])
def test_the_report_is_one_job_though_its_tables_have_a_folder(root):
    rows = [
        f"{root}/report/{name}\td\treport\tl\tok\tno update"
        for name in ("report.html", "tables/methods.csv")
    ]
    assert read_jobs("\n".join(rows)) == [Job("report", f"{root}/report", False)]


def test_a_finished_job_that_lost_a_file_is_told_apart():
    rows = [
        ("results/s/rl/A/seed_1/round_1/adapter/w", "d", "rl_round", "l", "missing", "no update"),
        ("results/s/rl/A/seed_1/round_1/turns", "d", "rl_round", "l", "ok", "no update"),
        ("results/s/rl/A/seed_1/round_2/turns", "-", "rl_round", "-", "missing", "update pending"),
    ]
    lost, to_run = read_jobs("\n".join(map("\t".join, rows)))
    path = "results/s/rl/A/seed_1/round_1/adapter/w"
    assert lost == Job("rl_round", "results/s/rl/A/seed_1/round_1", False, path)
    assert to_run == Job("rl_round", "results/s/rl/A/seed_1/round_2", True)


def test_a_job_knows_its_arm_and_its_benchmark_file():
    jobs = read_jobs(SUMMARY)
    assert [job.arm for job in jobs] == ["shared", "shared", "A", "A"]
    assert [job.name for job in jobs] == [
        "study_config",
        "sft",
        "A.seed_1.round_1",
        "A.seed_1.round_2",
    ]
    # A job in a bucket.
    far = Job("evaluate", "s3://bucket/hgrpo/results/s/eval/B/seed_2/round_3", True)
    assert (far.arm, far.seed, far.name) == ("B", "seed_2", "B.seed_2.round_3")


def test_a_failing_snakemake_is_one_line_of_ours(monkeypatch):
    failed = subprocess.CompletedProcess(
        [], 1, stdout="", stderr="  | a.NoCredentialsError: Unable to locate credentials\n  +---\n"
    )
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(UserError) as error:
        snakemake_summary(["study=mine"], Path("profiles/laptop"))
    assert str(error.value) == (
        "snakemake --summary: a.NoCredentialsError: Unable to locate credentials"
    )


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


def _rounds(study, arms, to_run):
    """Five rounds of each arm, of which some are to run."""
    return [
        Job("rl_round", f"results/{study}/rl/{arm}/seed_11/round_{number}", number in to_run)
        for arm in arms
        for number in range(1, 6)
    ]


def _expected(jobs, study, folder, profile):
    estimates = Estimates(study, folder, SPEED)
    return forecasts(jobs, estimates, study.config.resources, profile.cores)


@pytest.fixture
def planned(configs):
    """The plan of a study: its SFT is finished, and the first round of one arm."""
    path = configs / "studies/mine.yaml"
    path.write_text(yaml.safe_dump(STUDY), encoding="utf-8")
    study = load_study(path)
    jobs = [Job("sft", "results/mine/sft", False)]
    for arm in ("flatGRPO", "Progressive"):
        for number in (1, 2):
            first = arm == "flatGRPO" and number == 1
            jobs.append(Job("rl_round", f"results/mine/rl/{arm}/seed_11/round_{number}", not first))
    jobs.append(Job("evaluate", "results/mine/eval/SFTOnly/seed_11/round_0", True))

    def lines(profile: Profile) -> list[str]:
        expected = _expected(jobs, study, configs / "results/mine", profile)
        return report(study, expected, profile, {})

    return lines


def remember(configs, stage, name, seconds, folder, size):
    """A past job: the file with its seconds, and one file of its output."""
    home = configs / "results/mine"
    benchmark = benchmark_of(home, stage, name)
    benchmark.parent.mkdir(parents=True, exist_ok=True)
    benchmark.write_text(json.dumps({"s": seconds}) + "\n", encoding="utf-8")
    (home / folder).mkdir(parents=True, exist_ok=True)
    (home / folder / "file").write_bytes(bytes(size))


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


def remember_a_round(configs, seconds=5400, size=2_000_000_000):
    folder = "rl/flatGRPO/seed_11/round_1"
    remember(configs, "rl_round", "flatGRPO.seed_11.round_1", seconds, folder, size)


def test_hours_money_and_disk_of_the_jobs_to_run(configs, planned):
    remember(configs, "sft", "sft", 100, "sft", 50)
    remember_a_round(configs)
    evaluation = "SFTOnly.seed_11.round_0"
    remember(configs, "evaluate", evaluation, 3600, "eval/SFTOnly/seed_11/round_0", 1000)
    lines = planned(CLUSTER)
    # A round takes 1.5 h of 2 cores and 1 GPU: 1.5 * (2 * 0.1 + 2) = 3.30 dollars.
    assert cells(lines, "flatGRPO") == ["2", "1", "1", "3.00", "1.50", "3.30", "2.0", "GB"]
    # Two of them in an arm that has none of its own, which the mark says.
    assert cells(lines, "Progressive") == ["2", "0", "2", "6.00", "3.00", "6.60", "4.0", "GB", "+"]
    assert cells(lines, "rl_round") == [*"413", "5,400.0", "9.00", "4.50", "9.90", "6.0", "GB", "+"]
    assert cells(lines, "shared") == ["1", "1", "0", "0", "0", "0.00", "0", "B"]
    assert cells(lines, "SFTOnly") == ["1", "0", "1", "1.00", "0", "0.10", "1.0", "kB"]
    assert cells(lines, "all") == ["6", "2", "4", "10.00", "4.50", "10.00", "6.0", "GB", "+"]
    # The chain of Progressive's two rounds; 100 jobs at a time do the rest beside it.
    assert "4 jobs to run, about 3.0 hours with 100 at a time, without waiting in queues" in lines
    assert "the disk: 60.00 dollars a month, not in the column above" in lines


def test_before_any_job_on_gpus_hours_and_money_are_a_ceiling(planned):
    lines = planned(CLUSTER)
    assert not any("?" in line for line in lines)
    # `runtime` is 90 minutes.
    assert cells(lines, "flatGRPO")[:6] == ["2", "1", "1", "3.00", "1.50", "3.30"]
    assert cells(lines, "flatGRPO")[-1] == "<"
    assert cells(lines, "SFTOnly")[3] == "0.5000"
    assert "4 jobs to run, at most 3.0 hours with 100 at a time, without waiting in queues" in lines
    assert any(line.startswith("< a ceiling") for line in lines)


def test_without_prices_there_is_no_money(configs, planned):
    remember_a_round(configs, 60, 10)
    lines = planned(LAPTOP)
    assert "dollars" not in lines[0] and lines[0].split()[-2:] == ["GPU-h", "disk"]
    assert "no money is shown: there is no profiles/laptop/prices.yaml" in "\n".join(lines)


def test_a_job_takes_no_more_cores_than_there_are(configs, planned):
    remember_a_round(configs, 60, 10)
    evaluation = "SFTOnly.seed_11.round_0"
    remember(configs, "evaluate", evaluation, 120, "eval/SFTOnly/seed_11/round_0", 1000)
    lines = planned(replace(LAPTOP, cores=1))
    # A round asks for two threads and gets one: three rounds and an evaluation on one core.
    assert "4 jobs to run, about 5.0 minutes on 1 cores" in lines
    assert cells(lines, "flatGRPO")[3] == "0.0167"
    # Two threads each on a machine that has them, and half the evaluation.
    lines = planned(LAPTOP)
    assert cells(lines, "flatGRPO")[3] == "0.0333"
    assert "4 jobs to run, about 4.0 minutes on 2 cores" in lines


def test_example_prices_are_called_that(planned):
    example = Prices(core_hour=1, gpu_hour=1, example=True)
    lines = planned(replace(CLUSTER, prices=example))
    assert any("profiles/slurm/prices.yaml are examples" in line for line in lines)
    assert not any("are examples" in line for line in planned(CLUSTER))


def test_before_any_job_without_gpus_every_number_comes_from_reference_rates(tmp_path):
    study = load_study(PROJECT / "configs/studies/smoke.yaml")
    jobs = [Job("sft", "results/smoke/sft", True), *_rounds("smoke", ["flatGRPO"], [1, 2])]
    lines = report(study, _expected(jobs, study, tmp_path, LAPTOP), LAPTOP, {})
    assert not any("?" in line for line in lines)
    assert any(
        re.match(r"3 jobs to run, about \d+\.\d minutes on 2 cores$", line) for line in lines
    )
    assert "* in part from reference rates, scaled to this machine" in lines
    assert cells(lines, "flatGRPO")[-1] == "*"


@pytest.mark.parametrize("kind", ["torch", "vllm"])
def test_rounds_with_vllm_and_without_a_gpu_are_named(tmp_path, kind):
    study = load_study(PROJECT / "configs/studies/smoke.yaml", {"engine": {"kind": kind}})
    jobs = _rounds("smoke", ["flatGRPO"], [1, 2])
    lines = report(study, _expected(jobs, study, tmp_path, LAPTOP), LAPTOP, {})
    assert any("asks for no GPU" in line for line in lines) == (kind == "vllm")


def test_a_plan_fits_on_a_page(configs, planned):
    remember(configs, "sft", "sft", 100, "sft", 50)
    remember(configs, "evaluate", "SFTOnly.seed_11.round_0", 1, "eval/SFTOnly/seed_11/round_0", 1)
    flat = "flatGRPO.seed_11.round_1"
    remember(configs, "rl_round", flat, 5400, "rl/flatGRPO/seed_11/round_1", 2_000)
    assert max(map(len, planned(CLUSTER))) <= 100


@pytest.fixture
def judged(configs):
    """Loads a study of the arm Judge, with changes to its credit."""

    def load(**credit):
        path = configs / "studies/mine.yaml"
        judge = {"of": "LLMJudge", "label": "a judge", "credit": credit}
        text = {"name": "mine", "env": "alfworld-laptop", "model": "tiny", "rounds": 5}
        text |= {"methods": ["flatGRPO", "Judge"], "variants": {"Judge": judge}}
        path.write_text(yaml.safe_dump(text), encoding="utf-8")
        return load_study(path)

    return load


JOBS = _rounds("mine", ["flatGRPO", "Judge"], [3, 4, 5])
PAID = {"model": "gpt-4o-mini", "base_url": "https://api.openai.com/v1"}


def test_calls_of_a_judge_are_counted_for_the_rounds_to_run(judged):
    (line,) = service_call_lines(judged(**PAID), JOBS, {}, LAPTOP)
    # 3 rounds of 6 steps of 32 tasks, 8 rollouts each.
    assert line.startswith("Judge: up to 4,608 calls to gpt-4o-mini at https://api.openai.com/v1")
    assert "max_calls 50000, max_dollars 5" in line
    assert line.endswith("OPENAI_API_KEY is not set")
    (known,) = service_call_lines(judged(**PAID), JOBS, {"OPENAI_API_KEY": "k"}, LAPTOP)
    assert "OPENAI_API_KEY" not in known
    (group,) = service_call_lines(judged(**PAID, variant="group"), JOBS, {}, LAPTOP)
    assert "up to 576 calls" in group


def test_the_offline_rubric_and_cached_rounds_call_nobody(judged):
    assert service_call_lines(judged(), JOBS, {}, LAPTOP) == []
    finished = [replace(job, to_run=False) for job in JOBS]
    assert service_call_lines(judged(**PAID), finished, {}, BUCKET) == []


def test_a_plan_says_that_pods_share_no_account_of_calls(judged):
    assert read_profile(PROJECT / "profiles/kubernetes").in_bucket
    assert not read_profile(PROJECT / "profiles/slurm").in_bucket
    _, caps = service_call_lines(judged(**PAID), JOBS, {}, BUCKET)
    assert caps == "these caps hold for one round of one seed each: pods share no account"


@pytest.mark.parametrize(
    ("name", "minutes"), [("smoke", 9 + 3 + 5 + 7), ("smollm2_cpu", 9 + 5 + 7)]
)
def test_a_pretrained_base_is_made_beside_the_demonstrations(project, name, minutes):
    study = load_study(project / f"configs/studies/{name}.yaml")
    expected = [
        Forecast(
            Job(stage, f"results/s/{stage}", True),
            Estimate(60 * each),
            Estimate(0),
            StageResources(),
        )
        for stage, each in (
            *(("fetch_assets", 9), ("base", 3), ("expert", 5), ("sft", 7)),
            ("credit_agreement", 60),
        )
    ]
    assert wall_minutes(expected, study, Profile(project, cores=100)) == minutes


def test_shared_stages_come_before_and_after_the_runs(project):
    study = load_study(project / "configs/studies/bakeoff.yaml")

    def forecast(stage, folder, minutes):
        job = Job(stage, f"results/bakeoff/{folder}", True)
        return Forecast(job, Estimate(60 * minutes), Estimate(0), StageResources())

    expected = [forecast("sft", "sft", 5), forecast("report", "report", 1)]
    expected += [
        forecast("rl_round", f"rl/{arm}/seed_11/round_{number}", minutes)
        for arm, minutes in (("flatGRPO", 1), ("Vine", 4))
        for number in (1, 2)
    ]
    expected.append(forecast("evaluate", "eval/flatGRPO/seed_11/round_1", 10))
    # 2 * (1 + 4) + 10 on one core. On two cores flatGRPO's two rounds and its evaluation take 12.
    assert wall_minutes(expected, study, Profile(project, cores=1)) == 6 + 20
    assert wall_minutes(expected, study, Profile(project, cores=2)) == 6 + 12
