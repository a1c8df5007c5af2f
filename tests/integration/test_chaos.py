"""A study under real faults, and the documented recovery: the artefacts are those of a calm run.

Environments live inside the process that trains, so killing it kills them too. tests/cluster kills
jobs on Slurm.
"""

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
import yaml
from project_copy import copy_project

pytestmark = pytest.mark.slow

STUDY, STORE = Path("results/chaos"), Path("results/store")
# Stages before the first round.
FIRST = {"study_config", "assets", "expert", "base", "sft"}
# Seconds differ between any two runs, and a resumed step takes the judge's answers from its cache.
COSTS = re.compile(r"seconds|_s$|^judge_(calls|cache_hits|input_tokens|output_tokens|dollars)")
TRAINER = {b"hgrpo.cli.stage", b"rl_round"}


class Checkout:
    """A copy of the project with the study `chaos`."""

    def __init__(self, root):
        self.root = root

    def start(self, *arguments, **options):
        command = [sys.executable, "-m", "snakemake", *arguments, "--config", "study=chaos"]
        return subprocess.Popen(
            command,
            cwd=self.root,
            env=os.environ | {"PYTHONPATH": str(self.root), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            **options,
        )

    def run(self, *arguments):
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=300)
        return process.returncode, output

    def finish(self):
        code, output = self.run()
        assert code == 0, output

    def jobs(self, command=TRAINER):
        """Ids of the processes of this checkout whose command has some words."""
        jobs = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                words = (place / "cmdline").read_bytes().split(b"\0")
                here = (place / "cwd").resolve() == self.root
            except OSError:
                continue
            if here and command <= set(words):
                jobs.append(int(place.name))
        return jobs

    def await_job(self, process):
        """Return the id of a trainer of a running study, as soon as there is one."""
        while process.poll() is None:
            if jobs := self.jobs():
                return jobs[0]
            time.sleep(0.02)
        raise AssertionError(process.stdout.read())

    def kill_a_job(self, process):
        """Kill a trainer of a running study; rounds follow one another, so there is another."""
        while True:
            try:
                os.kill(self.await_job(process), signal.SIGKILL)
                return
            except ProcessLookupError:
                continue

    def made(self):
        """Key -> record of every finished job."""
        records = (self.root / STORE).glob("*/made.json")
        return {path.parent.name: json.loads(path.read_bytes()) for path in records}

    def unfinished(self, pattern):
        """(key, path) of the files that unfinished jobs have saved."""
        paths = sorted((self.root / STORE).glob(f"*/unfinished/*/{pattern}"))
        return [(path.relative_to(self.root / STORE).parts[0], path) for path in paths]

    def finished_steps(self):
        """Key -> log rows of the steps that an unfinished round has behind it."""
        steps = self.unfinished("step_*/rows.json")
        return {key: json.loads(path.read_bytes()) for key, path in steps}

    def artefacts(self):
        """Everything that a study's numbers rest on: weights as bytes, tables as rows."""
        files = {}
        for key, record in self.made().items():
            for name in record["files"]:
                path = self.root / STORE / key / name
                if path.suffix == ".safetensors":
                    files[key, name] = path.read_bytes()
                elif path.suffix == ".parquet":
                    files[key, name] = pd.read_parquet(path).to_json()
                elif path.suffix == ".csv" and path.stem != "cost":
                    rows = pd.read_csv(path)
                    costs = [each for each in rows if COSTS.search(each)]
                    files[key, name] = rows.drop(columns=costs).to_json()
        return files


@contextmanager
def served(port):
    """The judge that one arm asks, at an address of its own."""
    command = [sys.executable, "-m", "hgrpo.cli.judge_server", "--port", str(port)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
    )
    try:
        assert "judge server" in process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="module")
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture(scope="module")
def calm(project, tmp_path_factory, port):
    """The study, run without disturbance."""
    root = tmp_path_factory.mktemp("calm").resolve()
    copy_project(project, root)
    judged = {
        "name": "Judged",
        "alpha": 0.5,
        "credit": {
            "kind": "judge",
            "model": "offline-rubric",
            "base_url": f"http://127.0.0.1:{port}/v1",
            "api_key_env": None,
            "retries": 1,
            "backoff_s": 0.05,
            "fallback_limit": 0.0,
        },
    }
    study = {
        "name": "chaos",
        "env": "alfworld-smoke",
        "model": "tiny",
        "methods": ["flatGRPO", "Judged"],
        "seeds": [11],
        "rounds": 2,
        "training": {"steps_per_round": 3, "tasks_per_step": 6, "rollouts_per_task": 4},
        "sft": {"epochs": 1, "batch_trajectories": 16, "validation_share": 0.1},
        "evaluation": {"test_games": 16, "validation_games": 8},
    }
    (root / "configs/methods/Judged.yaml").write_text(yaml.safe_dump(judged), encoding="utf-8")
    (root / "configs/studies/chaos.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    checkout = Checkout(root)
    with served(port):
        checkout.finish()
    return checkout


@pytest.fixture
def judge(port):
    with served(port) as process:
        yield process


@pytest.fixture
def checkout(calm, tmp_path):
    """A copy of the calm run whose rounds are still to be played."""
    root = (tmp_path / "copy").resolve()
    shutil.copytree(calm.root, root, symlinks=True)
    shutil.rmtree(root / STUDY / "cache", ignore_errors=True)
    copied = Checkout(root)
    for key, record in copied.made().items():
        if record["stage"] not in FIRST:
            shutil.rmtree(root / STORE / key)
    yield copied
    for command in (TRAINER, {b"snakemake"}):
        for job in copied.jobs(command):
            os.kill(job, signal.SIGKILL)


def round_seconds(calm):
    """Mean duration of a round of the calm run."""
    seconds = [each["seconds"] for each in calm.made().values() if each["stage"] == "rl_round"]
    return sum(seconds) / len(seconds)


def wait_for_a_step(checkout):
    deadline = time.monotonic() + 120
    while not checkout.finished_steps():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("draw", range(3))
def test_the_trainer_is_killed(calm, checkout, judge, draw):
    process = checkout.start()
    checkout.await_job(process)
    if draw:
        wait_for_a_step(checkout)
    time.sleep(random.Random(draw).uniform(0, round_seconds(calm) / 3))
    checkout.kill_a_job(process)
    process.communicate(timeout=300)
    assert process.returncode != 0
    steps = checkout.finished_steps()
    checkout.finish()
    assert checkout.artefacts() == calm.artefacts()
    # Finished steps were not played again: not even their times have changed.
    for key, rows in steps.items():
        (log,) = (checkout.root / STORE / key).glob("rl/*/seed_11/*/train_log.json")
        assert json.loads(log.read_bytes())["rows"][: len(rows)] == rows


@pytest.mark.parametrize("draw", range(2))
def test_snakemake_itself_is_killed(calm, checkout, judge, draw):
    process = checkout.start()
    checkout.await_job(process)
    time.sleep(random.Random(draw).uniform(0, round_seconds(calm)))
    process.kill()
    process.communicate(timeout=300)
    orphans = checkout.jobs()
    code, output = checkout.run()
    assert code != 0 and "unlock" in output.lower()
    assert checkout.run("--unlock")[0] == 0
    if orphans:
        code, output = checkout.run()
        # Either the orphan finished first, or a second process is refused its round.
        assert code == 0 or "another process is running this job" in output, output
    for orphan in checkout.jobs():
        os.kill(orphan, signal.SIGKILL)
    checkout.finish()
    assert checkout.artefacts() == calm.artefacts()


def test_two_snakemakes_on_one_folder(calm, checkout, judge):
    first = checkout.start()
    checkout.await_job(first)
    code, output = checkout.run()
    assert code != 0 and "lock" in output.lower()
    output, _ = first.communicate(timeout=300)
    assert first.returncode == 0, output
    assert checkout.artefacts() == calm.artefacts()


def judged_steps(checkout):
    """Whether an unfinished round of the arm with a judge has played a step."""
    turns = checkout.unfinished("turns_00000.parquet")
    jobs = [json.loads((path.parents[2] / "job.json").read_bytes())["job"] for _, path in turns]
    return any(job["method"] == "Judged" for job in jobs)


def test_the_judge_is_killed(calm, checkout, port):
    with served(port) as judge:
        process = checkout.start("--keep-going")
        deadline = time.monotonic() + 120
        while not judged_steps(checkout) and time.monotonic() < deadline:
            time.sleep(0.02)
        judge.kill()
        output, _ = process.communicate(timeout=300)
    assert process.returncode != 0
    assert "fallback" in output, output
    assert not (checkout.root / STUDY / "report/report.html").exists()
    with served(port):
        checkout.finish()
    assert checkout.artefacts() == calm.artefacts()


def pages_of(folder):
    """Bytes that the files of a folder take on a disk."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return sum(-(-size // 4096) * 4096 for size in sizes)


def test_the_disk_is_full(calm, checkout, judge):
    disk = checkout.root / STORE
    there = disk.rename(disk.with_name("there"))
    disk.mkdir()
    has, needed = pages_of(there), pages_of(calm.root / STORE)
    size = f"size={has + (needed - has) * 6 // 10}"
    if subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", disk]).returncode:
        pytest.skip("needs the right to mount a small tmpfs")
    try:
        shutil.copytree(there, disk, dirs_exist_ok=True)
        code, output = checkout.run()
        assert code != 0 and "No space left" in output, output
        subprocess.run(["mount", "-o", f"remount,size={needed + 10**8}", disk], check=True)
        checkout.finish()
        assert checkout.artefacts() == calm.artefacts()
    finally:
        subprocess.run(["umount", disk], check=True)
