"""The extra for a GPU can be installed: pip finds versions that agree."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def test_pip_resolves_the_gpu_extra(project, tmp_path):
    pip = [sys.executable, "-m", "pip"]
    dry_run = subprocess.run(
        [*pip, "index", "versions", "vllm"], capture_output=True, encoding="utf-8"
    )
    if dry_run.returncode:
        last = dry_run.stderr.strip().splitlines()[-1]
        pytest.skip(f"pip reaches no package index that has vLLM: {last}")
    report = tmp_path / "report.json"
    install = [*pip, "install", "-q", "--dry-run", "--ignore-installed", "--report", str(report)]
    arguments = ["-c", "constraints-gpu.txt", "-e", ".[gpu,slurm]"]
    done = subprocess.run(
        [*install, *arguments], cwd=project, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    packages = json.loads(report.read_bytes())["install"]
    versions = {each["metadata"]["name"].lower(): each["metadata"]["version"] for each in packages}
    pins = (project / "constraints-gpu.txt").read_text(encoding="utf-8").splitlines()
    for name in ("vllm", "transformers", "snakemake", "snakemake-executor-plugin-slurm"):
        assert f"{name}=={versions[name]}" in pins
