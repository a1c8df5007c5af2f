"""A job in a fork of the warm process is as a job in a process of its own."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from places import PROJECT

from hgrpo.store.plan import Plan
from hgrpo.study.study import load_study
from hgrpo.workflow import warm as warm_process
from hgrpo.workflow.rules import StudyRules
from hgrpo.workflow.run import Run

JOB = """
import json, os, signal, sys, tempfile, time

def write(name, text):
    with open(name + ".tmp", "w") as file:
        file.write(text)
    os.replace(name + ".tmp", name)

write("seen", json.dumps({
    "temporary": tempfile.gettempdir(), "argv": sys.argv[1:], "folder": os.getcwd(),
    "variable": os.environ.get("MINE"),
    "imported": "fractions" in sys.modules, "pid": os.getpid(),
}))
print("said", flush=True)
print("complained", file=sys.stderr, flush=True)
code = sys.argv[1]
if code == "wait":
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        write("interrupted", "")
        sys.exit(130)
sys.exit(int(code))
"""
CAPTURED = {"capture_output": True, "text": True, "check": True}
CLIENT = "import sys; from hgrpo.workflow.warm import run_warm; sys.exit(run_warm('a_job'))"


@pytest.fixture
def warm(tmp_path):
    """A warm process that has imported `fractions`, and a folder with the module `a_job`."""
    (tmp_path / "a_job.py").write_text(JOB, encoding="utf-8")
    (tmp_path / "asks.py").write_text("import tempfile; tempfile.gettempdir()", encoding="utf-8")
    path = tmp_path / warm_process.SOCKET
    path.parent.mkdir(parents=True)
    env = os.environ | {"PYTHONPATH": f"{PROJECT}{os.pathsep}{tmp_path}", "OMP_NUM_THREADS": "1"}
    libraries = ("fractions", "asks", "no_such_library")
    server = subprocess.Popen(
        [sys.executable, "-m", "hgrpo.workflow.warm", *libraries],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        env=env,
    )
    wait_for(path)

    def job(*arguments, **variables):
        return subprocess.Popen(
            [sys.executable, "-c", CLIENT, *arguments],
            cwd=tmp_path,
            env=env | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    yield tmp_path, server, job
    if server.poll() is None:
        server.stdin.close()
        assert server.wait(120) == 0
        assert not path.exists()


def wait_for(path: Path, seconds: float = 120):
    ends = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < ends, f"{path} does not come"
        time.sleep(0.02)
    return path


def gone(pid: int) -> bool:
    ends = time.monotonic() + 120
    while time.monotonic() < ends:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("code", [0, 3])
def test_arguments_folder_variables_output_and_status_are_the_jobs(warm, code):
    folder, _, job = warm
    (folder / "temporary").mkdir()
    process = job(str(code), "two words", MINE="here", TMPDIR=str(folder / "temporary"))
    out, errors = process.communicate(timeout=120)
    assert (process.returncode, out, errors) == (code, "said\n", "complained\n")
    seen = json.loads((folder / "seen").read_bytes())
    assert seen.pop("pid") != process.pid
    assert seen == {
        "temporary": str(folder / "temporary"),
        "argv": [str(code), "two words"],
        "folder": str(folder),
        "variable": "here",
        "imported": True,
    }


def test_two_jobs_run_at_once_and_code_is_read_when_a_job_starts(warm):
    folder, _, job = warm
    first = job("wait")
    wait_for(folder / "seen")
    (folder / "a_job.py").write_text("import sys; sys.exit(7)", encoding="utf-8")
    second = job("0")
    assert second.wait(30) == 7
    assert first.poll() is None
    first.terminate()
    first.communicate(timeout=120)


def test_ctrl_c_reaches_the_job(warm):
    folder, _, job = warm
    process = job("wait")
    wait_for(folder / "seen")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130 and (folder / "interrupted").exists()


def test_a_killed_client_takes_the_job_with_it(warm):
    folder, _, job = warm
    process = job("wait")
    pid = json.loads(wait_for(folder / "seen").read_bytes())["pid"]
    process.kill()
    process.communicate(timeout=120)
    assert gone(pid)
    after = job("0")
    assert after.wait(30) == 0


def test_a_killed_warm_process_takes_the_job_with_it_and_the_caller_begins_it_again(warm):
    folder, server, job = warm
    process = job("wait")
    pid = json.loads(wait_for(folder / "seen").read_bytes())["pid"]
    server.kill()
    server.wait(30)
    _, errors = process.communicate(timeout=120)
    # `sys.exit(None)` is status 0: the caller goes on.
    assert process.returncode == 0
    assert "the process that ran this job was killed; restarting the job\n" in errors
    assert gone(pid)


def test_a_job_of_more_threads_runs_by_itself(warm):
    # `sys.exit(None)` is status 0: the client hands nothing over, and the caller goes on.
    folder, _, job = warm
    process = job("3", OMP_NUM_THREADS="2")
    assert process.communicate(timeout=120) == ("", "")
    assert process.returncode == 0 and not (folder / "seen").exists()


@pytest.mark.parametrize("answer", [b"", b"e\x01"], ids=["no fork", "a fork that ended at once"])
def test_a_job_that_no_fork_has_taken_runs_by_itself(tmp_path, monkeypatch, answer):
    path = tmp_path / warm_process.SOCKET
    path.parent.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(warm_process.SOCKET))
    listener.listen()
    env = os.environ | {"PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1"}
    client = subprocess.Popen([sys.executable, "-c", CLIENT], env=env)
    link, _ = listener.accept()
    link.recv(1 << 20)
    link.sendall(answer)
    link.close()
    assert client.wait(30) == 0
    listener.close()


@pytest.mark.parametrize("left", [None, "a socket that nobody serves"])
def test_without_a_warm_process_a_job_runs_by_itself(tmp_path, monkeypatch, left):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    warm_process.SOCKET.parent.mkdir(parents=True)
    if left:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(warm_process.SOCKET))
    assert warm_process.run_warm("a_job") is None


RUN = """
import signal, sys
from hgrpo.workflow import warm

warm._LIBRARIES = ("slow_library",)
warm.start()
signal.pause()
"""


@pytest.mark.parametrize("end", ["interrupted", "killed"])
def test_the_warm_process_ends_with_the_run_and_leaves_nothing(tmp_path, end):
    (tmp_path / "slow_library.py").write_text(
        "import os, time\n"
        "seen = f'{os.getpid()} {os.getsid(0)} {os.environ[\"MKL_NUM_THREADS\"]}'\n"
        "open('seen.tmp', 'w').write(seen)\n"
        "os.replace('seen.tmp', 'seen')\n",
        encoding="utf-8",
    )
    path = tmp_path / warm_process.SOCKET
    path.parent.mkdir(parents=True)
    # As after a crash of the machine.
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener,
        contextlib.chdir(tmp_path),
    ):
        listener.bind(str(warm_process.SOCKET))
    run = subprocess.Popen(
        [sys.executable, "-c", RUN],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{PROJECT}{os.pathsep}{tmp_path}", "MKL_NUM_THREADS": "8"},
        stderr=subprocess.DEVNULL,
    )
    pid, session, threads = wait_for(tmp_path / "seen").read_text(encoding="utf-8").split()
    # Ctrl-C in the terminal does not reach it; and its jobs have one thread.
    assert (session, threads) == (pid, "1")
    wait_for(path)
    run.send_signal(signal.SIGKILL if end == "killed" else signal.SIGINT)
    run.wait(30)
    assert gone(int(pid))
    assert not path.exists()


LEARN = """
import hashlib, sys
import pandas as pd
import torch
from transformers import AutoModelForCausalLM, Qwen2Config

torch.manual_seed(int(sys.argv[1]))
sizes = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4)
config = Qwen2Config(vocab_size=300, num_key_value_heads=2, **sizes)
model = AutoModelForCausalLM.from_config(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(3):
    ids = torch.randint(300, (4, 50))
    model(ids, labels=ids).loss.backward()
    optimizer.step()
digest = hashlib.sha256()
for tensor in model.parameters():
    digest.update(tensor.detach().numpy().tobytes())
table = pd.DataFrame({"x": torch.rand(9).numpy()}).rolling(3).mean()
print(digest.hexdigest(), table.x.sum(), torch.get_num_threads())
"""


@pytest.mark.slow
def test_a_fork_computes_the_same_bytes_as_a_process_of_its_own(tmp_path):
    (tmp_path / "learn.py").write_text(LEARN, encoding="utf-8")
    path = tmp_path / warm_process.SOCKET
    path.parent.mkdir(parents=True)
    env = os.environ | {"PYTHONPATH": f"{PROJECT}{os.pathsep}{tmp_path}"}
    env |= dict.fromkeys(warm_process._THREADS, "1")
    server = subprocess.Popen(
        [sys.executable, "-m", "hgrpo.workflow.warm", *warm_process._LIBRARIES],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        env=env,
    )
    wait_for(path, 120)
    client = CLIENT.replace("a_job", "learn")
    printed = [
        subprocess.run([sys.executable, *command, seed], cwd=tmp_path, env=env, **CAPTURED).stdout
        for command in (["-m", "learn"], ["-c", client])
        for seed in ("1", "2")
    ]
    server.stdin.close()
    server.wait(120)
    assert printed[:2] == printed[2:] and printed[0] != printed[1]
    assert all(line.endswith(" 1\n") for line in printed)


@pytest.mark.parametrize(
    ("name", "jobs", "starts"),
    [("smoke", 4, True), ("smoke", 3, False), ("alfworld_qwen", 9, False)],
)
def test_it_starts_only_where_it_saves_time(name, jobs, starts, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    plan = Plan(load_study(PROJECT / f"configs/studies/{name}.yaml", {"seeds": "11"}))
    planned = [each for each in plan.jobs() if each.stage == "rl_round"][:jobs]
    planned += [plan.find("figures"), plan.find("report")]
    assert Run(StudyRules(plan), elsewhere=False)._warms(planned) == starts
