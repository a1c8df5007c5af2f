"""A mistake in a study ends snakemake with one line that names it, and nothing runs."""

import importlib.util
import shutil
import subprocess
import sys
import sysconfig

import pytest
from project_copy import paths_below


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (
            "rounds=-2",
            "error: command line: configs/studies/grid.yaml with rounds overridden: rounds: input",
        ),
        (
            "set=training.filter.value=1.5",
            "configs/studies/grid.yaml with training overridden: training.filter.value: 1.5: str",
        ),
        (
            "methods=",
            "error: command line: methods=: expected a value; remove methods=",
        ),
        ("sedes=11", "command line: sedes: unknown key; did you mean 'seeds'?"),
        ("study=gird", "configs/studies/gird.yaml: no such file; did you mean 'grid'?"),
        (
            "set=axes.a={of: PPO, key: training.lr, values: [1.0, 1]}",
            "configs/studies/grid.yaml with axes overridden: axes.a.values: 1: duplicate",
        ),
        (
            "set=axes.a={of: PPO, key: training.lrr, values: [1, 2]}",
            "grid.yaml with axes overridden: axes.a: a_1: training.lrr: unknown key; did you mean",
        ),
        ("set=env.turn_cp=3", "command line: env.turn_cp: unknown key; did you mean 'turn_cap'?"),
        (
            "set=env.turn_cap=0",
            "error: command line: configs/envs/",
        ),
        ("methods=flatGRPO,Nobody", "methods: 'Nobody': no such file configs/methods/Nobody.yaml"),
    ],
)
def test_a_mistake_on_the_command_line(finished, setting, expected):
    assert expected in one_line_error(finished.snakemake("-n", setting))


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ("{budget: 100}", "endpoint.budget: flatGRPO: a budget of 100 trajectories is less than"),
        ("{budget: 3073}", "endpoint.budget: flatGRPO: a budget of 3,073 trajectories exceeds"),
        ("best_round", "endpoint: expected area, last_round or {budget: <trajectories>}"),
    ],
)
def test_an_endpoint_that_the_rounds_cannot_give(checkout, endpoint, expected):
    study = checkout.root / "configs/studies/grid.yaml"
    study.write_text(
        f"{study.read_text(encoding='utf-8')}evaluation: {{endpoint: {endpoint}}}\n",
        encoding="utf-8",
    )
    before = paths_below(checkout.root)
    assert expected in one_line_error(checkout.snakemake("-n"))
    assert paths_below(checkout.root) == before


def results(checkout) -> dict[str, int]:
    """File -> its last change (ns), without what planning writes."""
    paths = [path for path in (checkout.root / "results").rglob("*") if path.is_file()]
    return {str(p): p.lstat().st_mtime_ns for p in paths if p.name != "job.json"}


def test_a_judge_without_its_key_is_found_before_the_first_job(checkout, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    checkout.edit(
        "configs/methods/LLMJudge.yaml",
        "model: offline-rubric\n  base_url: service",
        "model: gpt-4o-mini\n  base_url: https://api.openai.com/v1",
    )
    judged = "methods=SFTOnly,flatGRPO,LLMJudge"
    assert "LLMJudge, seed 11: round 1" in checkout.planned(judged)
    before = results(checkout)
    done = checkout.snakemake(judged)
    assert done.returncode != 0
    assert done.stderr.splitlines()[-1].startswith("error: LLMJudge: the API key of judge")
    assert results(checkout) == before
    # In the same study, jobs that need no judge run without a key.
    summary = "results/grid/eval/flatGRPO/seed_11/round_1/summary.json"
    (checkout.root / summary).unlink()
    done = checkout.snakemake(summary, judged)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (checkout.root / summary).exists()
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    done = checkout.snakemake("results/grid/rl/LLMJudge/seed_11/round_1/summary.json", judged)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(
    importlib.util.find_spec("vllm") is not None, reason="what is tested is that vLLM is missing"
)
def test_an_engine_that_is_not_installed_is_found_before_the_first_job(checkout):
    study = checkout.root / "configs/studies/grid.yaml"
    study.write_text(study.read_text(encoding="utf-8") + "engine: {kind: vllm}\n", encoding="utf-8")
    assert "flatGRPO, seed 11: round 1" in checkout.planned()
    done = checkout.snakemake()
    assert done.returncode != 0
    assert done.stderr.splitlines()[-1].startswith("error: engine.kind: vllm: vLLM is not")
    # Jobs that make its games and its base need no engine.
    done = checkout.snakemake("results/grid/sft/summary.json")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        ("configs/studies/grid.yaml", "seeds", "sedes", "sedes: unknown key; did you mean 'seeds'"),
        ("configs/studies/grid.yaml", "alfworld-laptop", "mars", "env: 'mars': no such file"),
        ("configs/methods/Progressive.yaml", "0.5", "-1", "Progressive.yaml: alpha: input should"),
        (
            "configs/methods/Progressive.yaml",
            "alpha:",
            "advantage: gae\nalpha:",
            "Progressive.yaml: advantage: gae computes advantages from the critic, so `credit",
        ),
    ],
)
def test_a_mistake_in_a_file(checkout, name, old, new, expected):
    checkout.edit(name, old, new)
    assert expected in one_line_error(checkout.snakemake())


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("", "error: [Errno 17] File exists: 'results/grid'"),
        (
            "/rl/Progressive/seed_23/round_2/summary.json",
            "error: results/grid/rl/Progressive/seed_23/round_2: written by an earlier version of "
            "hgrpo without a store; move it or results/grid elsewhere, and run the "
            "study again",
        ),
    ],
)
def test_a_file_in_the_place_of_links_is_named_before_the_first_job(checkout, file, message):
    shutil.rmtree(checkout.root / "results")
    path = checkout.root / f"results/grid{file}"
    path.parent.mkdir(parents=True)
    path.touch()
    done = checkout.snakemake()
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1] == message
    assert list(checkout.root.glob("results/store/*/made.json")) == []


def test_a_failing_stage_leaves_no_output_and_shows_its_error(checkout):
    page = (checkout.root / "results/grid/report/report.html").resolve()
    page.unlink()
    checkout.edit(
        "rules/common.smk", "shell.prefix(", "shell.prefix('exec >&2; echo error: no; exit 2;' + "
    )
    done = checkout.snakemake()
    assert done.returncode != 0
    assert not page.exists()
    assert "Tables and the report" in done.stderr
    assert checkout.planned() == {"Tables and the report"}


def one_line_error(done) -> str:
    assert done.returncode != 0
    printed = (done.stdout + done.stderr).splitlines()
    lines = [line for line in printed if "profile" not in line]
    assert len(lines) == 1, done.stdout + done.stderr
    assert lines[0].startswith("error: ")
    return lines[0]


def test_jobs_run_with_a_python_in_a_folder_with_a_space(checkout, tmp_path):
    folder = tmp_path / "a venv/bin"
    folder.mkdir(parents=True)
    (folder / "python").symlink_to(sys.executable)
    checkout.take_real_commands()
    target = checkout.root / "results/grid/config.yaml"
    shutil.rmtree(target.resolve().parent)
    packages = sysconfig.get_path("purelib")
    done = subprocess.run(
        [
            folder / "python",
            "-m",
            "snakemake",
            "results/grid/config.yaml",
            "--config",
            "study=grid",
        ],
        cwd=checkout.root,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{checkout.root}:{packages}", "HOME": "/tmp"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "grid" in target.read_text(encoding="utf-8")
