"""A study on a real Slurm: the same results as without, through failures and a killed snakemake."""

import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from cluster_checkout import ROUND, SAME_FILES, Checkout, make_checkout, run_id
from slurm_node import jobs, listening

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("slurm")]


def different(one: Checkout, other: Checkout) -> list[str]:
    """Which of the study's files are not the same, byte for byte."""
    return [
        name
        for name in SAME_FILES
        if (one.results / name).read_bytes() != (other.results / name).read_bytes()
    ]


@pytest.mark.parametrize("daemon", ["slurmctld", "slurmd"])
def test_the_daemons_listen_on_loopback_alone(daemon):
    # 127.0.0.1, its bytes in the machine's order.
    assert listening(daemon) == {"0100007F"}


def test_the_same_results_as_without_slurm_though_a_round_is_killed(local, project, tmp_path):
    checkout = make_checkout(project, tmp_path / "checkout")
    done = checkout.snakemake(accident=signal.SIGKILL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert different(local, checkout) == []
    submitted = jobs(f"--name={run_id(done.stdout + done.stderr)}")
    # The executor's name of a job is its rule and its wildcards; keys change with the code.
    names = [re.sub("^rule_|_[0-9a-f]{16}(?=_)", "", job["rule"]) for job in submitted]
    assert sorted(zip(names, (job["state"] for job in submitted), strict=True)) == [
        ("beginning_assets_base_expert", "COMPLETED"),
        ("evaluate_wildcards_SFTOnly_0_0", "COMPLETED"),
        ("evaluate_wildcards_flatGRPO_11_1", "COMPLETED"),
        ("page_figures_merge_report", "COMPLETED"),
        ("rl_round_wildcards_flatGRPO_11_1", "COMPLETED"),
        ("rl_round_wildcards_flatGRPO_11_1", "FAILED"),
        ("sft", "COMPLETED"),
        ("study_config", "COMPLETED"),
    ]
    by_rule = {job["rule"]: job for job in submitted}
    rounds = [job for job in submitted if "rl_round" in job["rule"]]
    assert [(job["state"], job["memory"]) for job in rounds] == [
        ("FAILED", "1700M"),
        ("COMPLETED", "3400M"),
    ]
    assert {(job["partition"], job["gpus"]) for job in rounds} == {("gpu", "gres:gpu:1")}
    others = [job for job in submitted if job not in rounds]
    assert {(job["partition"], job["gpus"]) for job in others} == {("cpu", "N/A")}
    assert by_rule["rule_sft"]["memory"] == "2500M"
    # The round saw the device that Slurm gave it.
    assert (checkout.root / "accident").read_text(encoding="utf-8").split()[1] == "0"
    assert re.search(r"^total +1$", checkout.snakemake("-n").stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("result", "module", "partition"),
    [(ROUND, "learning/update.py", "gpu"), ("sft", "stages/sft.py", "cpu")],
)
def test_code_edited_while_a_job_waits_is_refused_until_the_edit_is_taken_back(
    local, tmp_path, result, module, partition
):
    checkout = without(result, local, tmp_path / "checkout")
    target = f"results/cluster/{result}/summary.json"
    edited = checkout.root / "hgrpo" / module
    planned = edited.read_text(encoding="utf-8")
    output = checkout.root / "refused.out"
    subprocess.run(["scontrol", "update", f"partitionname={partition}", "state=down"], check=True)
    try:
        with output.open("wb") as handle:
            main = subprocess.Popen(
                checkout.command(target, "--retries=0"),
                cwd=checkout.root,
                env=checkout.environment(),
                stdout=handle,
                stderr=handle,
            )
        wait_for(lambda: "SLURM run ID" in output.read_text(encoding="utf-8"), main)
        submitted = run_id(output.read_text(encoding="utf-8"))
        wait_for(lambda: states(submitted) == ["PENDING"], main)
        edited.write_text(planned + "\nMORE = 1\n", encoding="utf-8")
    finally:
        subprocess.run(["scontrol", "update", f"partitionname={partition}", "state=up"], check=True)
    assert main.wait(timeout=180) != 0
    assert states(submitted) == ["FAILED"]
    refusal = "the settings or the code of this job have changed since the run was planned"
    assert refusal in output.read_text(encoding="utf-8")
    assert not (checkout.results / result).exists()

    edited.write_text(planned, encoding="utf-8")
    again = checkout.snakemake(target)
    assert again.returncode == 0, again.stdout + again.stderr
    assert different(local, checkout) == []


def test_a_killed_snakemake_leaves_its_job_and_no_second_one_trains_beside_it(local, tmp_path):
    checkout = without(ROUND, local, tmp_path / "checkout")
    target = f"results/cluster/{ROUND}/summary.json"
    output = checkout.root / "killed.out"
    with output.open("wb") as handle:
        main = subprocess.Popen(
            checkout.command(target),
            cwd=checkout.root,
            env=checkout.environment(signal.SIGSTOP),
            stdout=handle,
            stderr=handle,
        )
        try:
            # The round stops after its first step and still holds its lock.
            wait_for(lambda: (checkout.root / "accident").exists(), main)
        finally:
            main.kill()
            main.wait()
    killed = run_id(output.read_text(encoding="utf-8"))
    assert states(killed) == ["RUNNING"]

    # If the user reruns without looking at the queue, the second job finds the lock and ends.
    assert checkout.snakemake("--unlock").returncode == 0
    careless = checkout.snakemake(target, "--retries=0", "--set-resources=rl_round:gpu=0")
    printed = careless.stdout + careless.stderr
    assert careless.returncode != 0
    assert "another process is running this job" in printed
    assert states(run_id(printed)) == ["FAILED"]
    assert states(killed) == ["RUNNING"]
    assert not (checkout.root / target).exists()

    # docs/cluster.md gives this remedy.
    subprocess.run(["scancel", f"--name={killed}"], check=True)
    wait_for(lambda: states(killed) == ["CANCELLED"])
    again = checkout.snakemake(target)
    assert again.returncode == 0, again.stdout + again.stderr
    assert different(local, checkout) == []
    assert not list(Path(checkout.root, "results").glob("**/*.tmp-*"))


def without(result: str, local: Checkout, root: Path) -> Checkout:
    """A copy of the finished study that has lost a folder of results."""
    shutil.copytree(local.root, root, symlinks=True)
    checkout = Checkout(root)
    folders = (checkout.results / result).resolve().parents
    shutil.rmtree(next(path for path in folders if path.parent.name == "store"))
    (root / "accident").unlink(missing_ok=True)
    return checkout


def states(run: str) -> list[str]:
    return [job["state"] for job in jobs(f"--name={run}")]


def wait_for(condition, process: subprocess.Popen | None = None, seconds: float = 180) -> None:
    """Wait until it holds; a failure when it does not in time, or the process has ended."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        assert process is None or process.poll() is None, "snakemake ended early"
        time.sleep(0.1)
