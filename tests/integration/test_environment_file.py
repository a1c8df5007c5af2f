"""What conda makes of environment.yml: pip resolves it to the versions that were tested."""

import json
import shutil
import subprocess
import sys

import pytest
import yaml
from packaging.utils import canonicalize_name
from project_copy import copy_project

pytestmark = pytest.mark.slow


def test_pip_resolves_it_to_the_tested_versions(project, tmp_path):
    pip = [sys.executable, "-m", "pip"]
    report = subprocess.run(
        [*pip, "index", "versions", "snakemake"], capture_output=True, encoding="utf-8"
    )
    if report.returncode:
        pytest.skip(f"pip reaches no package index: {report.stderr.strip().splitlines()[-1]}")
    root = tmp_path / "checkout"
    root.mkdir()
    copy_project(project, root)
    for name in ("pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
        shutil.copy2(project / name, root)
    # As conda does: a file of requirements beside environment.yml.
    *_, listed = yaml.safe_load((project / "environment.yml").read_bytes())["dependencies"]
    (root / "condaenv.requirements.txt").write_text(
        "\n".join(listed["pip"]) + "\n", encoding="utf-8"
    )
    install = [*pip, "install", "-q", "--dry-run", "--ignore-installed", "--report", "report.json"]
    done = subprocess.run(
        [*install, "-r", "condaenv.requirements.txt"],
        cwd=root,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    packages = {
        canonicalize_name(each["metadata"]["name"]): each["metadata"]["version"]
        for each in json.loads((root / "report.json").read_bytes())["install"]
    }
    lines = (project / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    pins = {canonicalize_name(name): version for name, version in pins.items()}
    assert {"hgrpo", "torch", "snakemake", "openai"} <= set(packages)
    # A local build of torch adds a part of its own to the version: 2.13.0+cpu.
    both = packages.keys() & pins.keys()
    assert {name: packages[name].partition("+")[0] for name in both} == {
        name: pins[name] for name in both
    }
