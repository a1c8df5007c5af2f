"""Two processes that share an update find what one finds alone."""

import itertools
import os
import subprocess
import sys

import pytest
import torch
from places import PROJECT
from rank_worker import measure

from hgrpo.learning.ranks import ALONE, Ranks, joined_ranks

WORKER = PROJECT / "tests/rank_worker.py"
CLOCKS = {"collect_s", "credit_s", "update_s", "elapsed_s"}


def start(root):
    """Run the worker in two processes and return what each of them saved."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    path = os.environ.get("PYTHONPATH", "")
    done = subprocess.run(
        [sys.executable, *launcher, WORKER, root],
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join([str(WORKER.parent), str(PROJECT), path]),
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo",
        },
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return [torch.load(root / f"rank_{index}/measured.pt") for index in range(2)]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield measure(tmp_path_factory.mktemp("alone"), ALONE)
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("both")


@pytest.fixture(scope="module")
def both(root):
    return start(root)


@pytest.mark.parametrize("kind", ["plain", "corrected"])
def test_the_gradient_is_that_of_one_process(alone, both, kind):
    one, two = alone[kind], both[0][kind]
    for name, moved in one["moved"].items():
        assert moved.abs().max() > 0
        assert torch.allclose(moved, two["moved"][name], rtol=1e-4, atol=1e-7), name
    assert one["row"].keys() == two["row"].keys()
    for name, value in one["row"].items():
        assert two["row"][name] == pytest.approx(value, rel=1e-4, abs=1e-6), name


def test_all_take_the_same_step_to_the_bit(both):
    for kind in ("plain", "corrected"):
        for name, moved in both[0][kind]["moved"].items():
            assert torch.equal(moved, both[1][kind]["moved"][name])
    for name, weight in both[0]["weights"].items():
        assert torch.equal(weight, both[1]["weights"][name])


def test_a_round_is_played_as_by_one_process(alone, both):
    for one, two in zip(alone["rows"], both[0]["rows"], strict=True):
        for name in one.keys() - CLOCKS:
            # A number that neither run has is None.
            alike = one[name] if one[name] is None else pytest.approx(one[name], rel=1e-3, abs=1e-5)
            assert two[name] == alike, name
    assert alone["rows"][0]["n_groups"] == 5
    for name, weight in alone["weights"].items():
        assert torch.allclose(weight, both[0]["weights"][name], rtol=1e-3, atol=1e-4), name


def test_one_process_writes_for_all(both, root):
    assert list((root / "rank_0/scratch").iterdir())
    assert not list((root / "rank_1/scratch").iterdir())


def test_shares_are_joined_in_order(monkeypatch):
    for size, number in itertools.product([1, 2, 3, 7], range(8)):
        items = list(range(number))
        shares = [Ranks(index, size).share(items) for index in range(size)]
        assert max(map(len, shares)) - min(map(len, shares)) <= 1
        monkeypatch.setattr(Ranks, "gather", lambda self, mine, shares=shares: shares)
        assert Ranks(0, size).join(shares[0]) == items


def test_a_variable_of_somebody_elses_launcher_says_nothing(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    assert joined_ranks() == ALONE


DIES = """
import os, signal, sys, time
from hgrpo.learning.ranks import become_ranks
become_ranks(2)
if os.environ["RANK"] == "1":
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(60)
"""


def test_a_process_that_is_killed_is_named(tmp_path):
    (tmp_path / "dies.py").write_text(DIES, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "dies"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{PROJECT}"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "error: process 1 ended by signal 9 (SIGKILL)"
