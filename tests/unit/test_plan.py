"""The plan: jobs counted from Snakemake's own table, times from its benchmark files."""

import json

import pytest
import yaml

from hgrpo.cli.plan import (
    StagePlan,
    count_jobs,
    judge_lines,
    mean_seconds,
    read_jobs,
    render,
)
from hgrpo.config.study import StageResources, load_study

SUMMARY = "\n".join(
    "\t".join(row)
    for row in [
        ("output_file", "date", "rule", "log-file(s)", "status", "plan"),
        ("results/s/sft/adapter/model.safetensors", "d", "sft", "l", "ok", "no update"),
        ("results/s/sft/summary.json", "d", "sft", "l", "ok", "no update"),
        ("results/s/rl/A/seed_1/round_1/adapter/w", "d", "rl_round", "l", "ok", "no update"),
        ("results/s/rl/A/seed_1/round_1/turns.parquet", "d", "rl_round", "l", "ok", "no update"),
        ("results/s/rl/A/seed_1/round_2/adapter/w", "-", "rl_round", "-", "-", "update pending"),
        ("results/s/rl/A/seed_1/round_2/turns", "-", "rl_round", "-", "-", "update pending"),
    ]
)


def test_a_job_is_counted_once_whatever_it_writes():
    jobs, pending = count_jobs(read_jobs(SUMMARY))
    assert jobs == {"sft": 1, "rl_round": 2}
    assert pending == {"rl_round": 1}


def write_benchmark(results, study, name, seconds):
    folder = results / study / "benchmarks/rl_round"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_text(json.dumps({"s": seconds}) + "\n")


def test_durations_come_from_this_study_before_any_other(tmp_path):
    assert mean_seconds(tmp_path, "mine", "rl_round") == (None, False)
    write_benchmark(tmp_path, "other", "a", 100)
    assert mean_seconds(tmp_path, "mine", "rl_round") == (100, True)
    write_benchmark(tmp_path, "mine", "a", 10)
    write_benchmark(tmp_path, "mine", "b", 20)
    assert mean_seconds(tmp_path, "mine", "rl_round") == (15, False)


def test_time_is_counted_for_pending_jobs_and_their_threads():
    plan = StagePlan("sft", 3, 2, 30.0, StageResources(threads=2))
    assert plan.core_minutes == 2.0
    assert StagePlan("sft", 3, 0, None, StageResources()).core_minutes == 0
    assert StagePlan("sft", 3, 1, None, StageResources()).core_minutes is None


def test_the_table_says_what_it_cannot_know():
    known = StagePlan("rl_round", 4, 4, 60.0, StageResources())
    unknown = StagePlan("evaluate", 2, 1, None, StageResources())
    text = render([known, unknown], cores=2)
    assert "5 jobs to run, at least 2.0 minutes on 2 cores" in text
    assert text.endswith("not counting evaluate, which never ran here")


def test_the_report_is_one_job_though_its_tables_have_a_folder():
    rows = [
        f"results/s/report/{name}\td\treport\tl\tok\tno update"
        for name in ("report.html", "tables/methods.csv")
    ]
    assert count_jobs(read_jobs("\n".join(rows)))[0] == {"report": 1}


def test_borrowed_seconds_are_marked():
    own = StagePlan("sft", 1, 1, 60.0, StageResources())
    borrowed = StagePlan("rl_round", 4, 4, 60.0, StageResources(), borrowed=True)
    lines = render([own, borrowed], cores=2).splitlines()
    assert not lines[1].endswith("*") and lines[2].endswith("4.0*")
    assert lines[-1].startswith("* seconds of other studies")
    assert "*" not in render([own], cores=2)


@pytest.fixture
def judged(project, tmp_path):
    """Loads a study of the arm Judge, with changes to its credit."""

    def load(**credit):
        for part in ("envs", "methods", "models"):
            if not (tmp_path / part).exists():
                (tmp_path / part).symlink_to(project / "configs" / part)
        (tmp_path / "studies").mkdir(exist_ok=True)
        path = tmp_path / "studies/mine.yaml"
        judge = {"of": "LLMJudge", "label": "a judge", "credit": credit}
        text = {"name": "mine", "env": "alfworld-laptop", "model": "tiny", "rounds": 5}
        text |= {"methods": ["flatGRPO", "Judge"], "variants": {"Judge": judge}}
        path.write_text(yaml.safe_dump(text))
        return load_study(path)

    return load


JOBS = {
    ("rl_round", f"results/mine/rl/{method}/seed_11/round_{number}"): number > 2
    for method in ("flatGRPO", "Judge")
    for number in range(1, 6)
}
PAID = {"model": "gpt-4o-mini", "base_url": "https://api.openai.com/v1"}


def test_calls_of_a_judge_are_counted_for_the_rounds_to_run(judged):
    (line,) = judge_lines(judged(**PAID), JOBS, {})
    # 3 rounds of 6 steps of 32 tasks, 8 rollouts each.
    assert line.startswith("Judge: up to 4,608 calls to gpt-4o-mini at https://api.openai.com/v1")
    assert "max_calls 50000, max_dollars 5" in line
    assert line.endswith("OPENAI_API_KEY is not set")
    (known,) = judge_lines(judged(**PAID), JOBS, {"OPENAI_API_KEY": "k"})
    assert "OPENAI_API_KEY" not in known
    (group,) = judge_lines(judged(**PAID, variant="group"), JOBS, {})
    assert "up to 576 calls" in group


def test_the_offline_rubric_and_cached_rounds_call_nobody(judged):
    assert judge_lines(judged(), JOBS, {}) == []
    assert judge_lines(judged(**PAID), dict.fromkeys(JOBS, False), {}) == []
