"""The plan: jobs counted from Snakemake's own table, times from its benchmark files."""

import json

from hgrpo.cli.plan import StagePlan, count_jobs, mean_seconds, render
from hgrpo.config.study import StageResources

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
    jobs, pending = count_jobs(SUMMARY)
    assert jobs == {"sft": 1, "rl_round": 2}
    assert pending == {"rl_round": 1}


def write_benchmark(results, study, name, seconds):
    folder = results / study / "benchmarks/rl_round"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_text(json.dumps({"s": seconds}) + "\n")


def test_durations_come_from_this_study_before_any_other(tmp_path):
    assert mean_seconds(tmp_path, "mine", "rl_round") is None
    write_benchmark(tmp_path, "other", "a", 100)
    assert mean_seconds(tmp_path, "mine", "rl_round") == 100
    write_benchmark(tmp_path, "mine", "a", 10)
    write_benchmark(tmp_path, "mine", "b", 20)
    assert mean_seconds(tmp_path, "mine", "rl_round") == 15


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
    assert count_jobs("\n".join(rows))[0] == {"report": 1}
