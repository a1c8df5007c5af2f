"""A Slurm of one node, and a study's results without any cluster."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_checkout import NAME, Checkout, make_checkout
from slurm_node import reason_to_skip, running_node


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Slurm is up."""
    reason = reason_to_skip()
    if reason:
        pytest.skip(reason)
    pytest.importorskip("snakemake_executor_plugin_slurm", reason="needs the extra `slurm`")
    with running_node(tmp_path_factory.mktemp("slurm") / "node"):
        yield


@pytest.fixture(scope="session")
def local(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The study, run on this machine as on a laptop; tests must not write to it."""
    checkout = make_checkout(project, tmp_path_factory.mktemp("local") / "checkout")
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--config", f"study={NAME}"],
        cwd=checkout.root,
        env=checkout.environment(),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return checkout
