"""The judge server as a process, asked by EndpointJudge: drills, shared caches, clean ends."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import replace

import pytest
from judge_cases import (
    GOAL,
    ROOM,
    WON,
    by_rules,
    counted,
    failures,
    group,
    odd_trajectories,
    prompt_of,
    settings,
    trajectory,
    two_jobs,
    values,
)

from hgrpo.credit.base import Context
from hgrpo.credit.judge import make
from hgrpo.credit.judge.protocol import CALL_FAILURES
from hgrpo.errors import UserError

# A fault of the server -> what the client calls it.
FAULTS = {
    "rate-limit": "rate_limit",
    "drop": "connection",
    "timeout": "timeout",
    "malformed": "malformed",
    "wrong-length": "wrong_length",
}

# One of several jobs of a study: its own process, the shared cache, the same trajectories.
JOB = """
import json, sys
from pathlib import Path
from judge_cases import counted, failures, group, settings
from hgrpo.credit.base import Context
from hgrpo.credit.judge import make
cache, url, changes = sys.argv[1:]
context = Context("alfworld", cache_dir=Path(cache))
judge = make(settings(base_url=url, api_key_env=None, **json.loads(changes)), context)
sys.stdin.readline()
rows = [row.tolist() for i in range(0, 60, 4) for row in judge.assign(group(failures(4, i)))]
print(json.dumps([rows, counted(judge)]))
"""


class Served:
    """A running server."""

    def __init__(self, process, url):
        self.process = process
        self.url = url

    def get(self, path):
        with urllib.request.urlopen(self.url.removesuffix("/v1") + path) as answer:
            return json.load(answer)

    def stats(self):
        return self.get("/stats")

    def stop(self):
        """End it as a workflow would; returns its exit code and all it wrote once it was ready."""
        self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=60)
        return self.process.returncode, out


@contextmanager
def serve(*options):
    command = [sys.executable, "-m", "hgrpo.cli.judge_server", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
    )
    try:
        line = process.stdout.readline()
        head, _, url = line.strip().rpartition(" ")
        assert head == "judge server: offline-rubric at", line + process.stdout.read()
        yield Served(process, url)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="module")
def healthy():
    """A server without faults, for tests that do not count its requests."""
    with serve() as server:
        yield server


@pytest.fixture
def judge_of(tmp_path):
    def build(server, environment="alfworld", **changes):
        context = Context(environment, cache_dir=tmp_path / "cache")
        url = server.url if server else "service"
        chosen = {"base_url": url, "api_key_env": None} | changes
        return make(settings(**chosen), context)

    return build


def cached_scores(tmp_path):
    with sqlite3.connect(tmp_path / "cache" / "judge.sqlite") as database:
        return [json.loads(text) for (text,) in database.execute("SELECT scores FROM answers")]


@pytest.mark.parametrize("variant", ["trajectory", "group"])
def test_it_answers_and_counts_as_the_rubric_in_process_does(healthy, judge_of, variant):
    played = [trajectory(WON, success=True), *failures(3), *odd_trajectories(), trajectory([])]
    served, local = judge_of(healthy, variant=variant), judge_of(None, variant=variant)
    assert values(served.assign(group(played))) == values(local.assign(group(played)))
    assert served.report() == local.report()


def test_five_faults_at_once_are_counted_alike_and_spoil_nothing(tmp_path, judge_of):
    played = failures(40)
    options = [option for fault in FAULTS for option in ("--fault", f"{fault}=0.2")]
    with serve(*options, "--seed", "5") as server:
        patience = {"timeout_s": 1.0, "concurrency": 16}
        first = judge_of(server, retries=2, fallback_limit=1.0, **patience)
        groups = [group(played[i : i + 8]) for i in range(0, 40, 8)]
        rows = [row for rows in first.assign_many(groups) for row in rows]
        report, stats = counted(first), server.stats()
        assert report["calls"] == stats["requests"]
        assert report["input_tokens"] == stats["input_tokens"]
        assert report["output_tokens"] == stats["output_tokens"]
        for fault, reason in FAULTS.items():
            assert stats[fault] > 0
            assert report[f"failed_{reason}"] == stats[fault]
        assert report["judged"] == 40
        assert stats["answered"] == 40 - report["fallbacks"]
        assert report["retries"] == report["calls"] - 40
        assert 0 < report["fallbacks"] < 40
        assert report["fallbacks"] == sum(report[f"fallback_{r}"] for r in FAULTS.values())
        uniform = sum(not row.any() for row in rows)
        assert uniform == report["fallbacks"]
        right = [[by_rules(one)] for one in played]
        cached = cached_scores(tmp_path)
        assert len(cached) == stats["answered"]
        assert all(scores in right for scores in cached)

        # A second job asks only for what the first one did not get.
        second = judge_of(server, retries=40, fallback_limit=0.0, **patience)
        second.assign(group(played))
        assert counted(second)["cache_hits"] == 40 - report["fallbacks"]
        assert counted(second)["calls"] == server.stats()["requests"] - stats["requests"]
        assert sorted(cached_scores(tmp_path)) == sorted(right)
    third = judge_of(server, retries=0, fallback_limit=0.0)
    assert values(third.assign(group(played))) == values(second.assign(group(played)))
    assert (counted(third)["calls"], counted(third)["cache_hits"]) == (0, 40)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_without_end_fails_the_run(tmp_path, judge_of, fault):
    with serve("--fault", f"{fault}=1") as server:
        patience = 0.5 if fault == "timeout" else 60.0
        judge = judge_of(server, retries=1, timeout_s=patience, fallback_limit=0.5, concurrency=20)
        with pytest.raises(UserError, match=rf"20 of 20 .*\({FAULTS[fault]} 20\)"):
            judge.assign(group(failures(20)))
        assert counted(judge)["calls"] == server.stats()["requests"] == 40
        assert cached_scores(tmp_path) == []


def test_without_a_server_every_trajectory_is_a_fallback(tmp_path, judge_of):
    with serve() as server:
        server.stop()
    judge = judge_of(server, retries=1, fallback_limit=1)
    assert values(judge.assign(group(failures(2)))) == [[0.0] * 4] * 2
    assert counted(judge)["fallback_connection"] == 2
    assert counted(judge)["calls"] == 4


def test_a_call_cap_is_held_and_the_cache_goes_on(tmp_path, judge_of):
    with serve() as server:
        capped = judge_of(server, max_calls=5, concurrency=4, fallback_limit=0.5)
        capped.assign(group(failures(8)))
        assert counted(capped)["fallback_call_cap"] == 3
        assert counted(capped)["calls"] == server.stats()["requests"] == 5
        again = judge_of(server, max_calls=0, fallback_limit=0.5)
        again.assign(group(failures(8)))
        assert (counted(again)["cache_hits"], counted(again)["fallback_call_cap"]) == (5, 3)
        assert server.stats()["requests"] == 5


def test_a_dollar_cap_is_held_with_many_calls_under_way(tmp_path, judge_of):
    prices = {"dollars_per_million_input": 500.0, "dollars_per_million_output": 1000.0}
    with serve() as server:
        judge = judge_of(server, max_dollars=5.0, concurrency=8, fallback_limit=1, **prices)
        judge.assign(group(failures(19)))
        report, stats = counted(judge), server.stats()
    assert 0 < report["fallback_dollar_cap"] < 19
    assert report["calls"] == stats["requests"] == 19 - report["fallback_dollar_cap"]
    spent = (stats["input_tokens"] * 500 + stats["output_tokens"] * 1000) / 1e6
    assert report["dollars"] == pytest.approx(spent)
    assert 2.5 < spent <= 5.0


def side_by_side(project, tmp_path, url, **changes):
    """(rows, counts) of two jobs that start together on one cache."""
    jobs = two_jobs(project, JOB, tmp_path / "cache", url, json.dumps(changes))
    return [json.loads(out) for out in jobs]


def test_jobs_side_by_side_share_one_cache(project, tmp_path):
    with serve() as server:
        (rows, first), (others, second) = side_by_side(project, tmp_path, server.url)
        assert rows == others
        assert first["calls"] + second["calls"] == server.stats()["requests"]
        for report in (first, second):
            assert report["calls"] + report["cache_hits"] == report["judged"] == 60
            assert report["fallbacks"] == 0
        assert sorted(cached_scores(tmp_path)) == sorted([by_rules(p)] for p in failures(60))


def test_jobs_side_by_side_share_one_cap(project, tmp_path, judge_of):
    capped = {"max_calls": 25, "fallback_limit": 1.0}
    with serve() as server:
        jobs = side_by_side(project, tmp_path, server.url, **capped)
        calls = sum(report["calls"] for _, report in jobs)
        assert calls == server.stats()["requests"] == 25
        assert len(cached_scores(tmp_path)) <= 25
        for _, report in jobs:
            assert report["fallback_call_cap"] == report["fallbacks"] > 0
            assert report["fallbacks"] + report["cache_hits"] + report["calls"] == 60
        # A job that is resumed has no cap of its own, and what is cached needs none.
        resumed = judge_of(server, **capped)
        resumed.assign(group(failures(60)))
        assert server.stats()["requests"] == 25
        assert counted(resumed)["cache_hits"] == len(cached_scores(tmp_path))


def test_servers_with_one_model_name_share_no_scores(judge_of):
    with serve() as one, serve() as other:
        for server in (one, other):
            judge_of(server).assign(group(failures(3)))
            judge_of(server, base_url=server.url + "/").assign(group(failures(3)))
        assert [server.stats()["requests"] for server in (one, other)] == [3, 3]


def test_it_says_what_it_is(healthy):
    assert healthy.url.startswith("http://127.0.0.1:")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        healthy.get("/v1/nothing")


def test_it_passes_for_no_other_model(healthy, judge_of):
    with pytest.raises(UserError, match=r"model 'gpt-4o-mini' at .*HTTP 404"):
        judge_of(healthy, model="gpt-4o-mini").assign(group(failures(1)))


def ask(url, prompt):
    """The server's answer to a prompt, sent as the client sends it."""
    content = {"model": "offline-rubric", "messages": prompt.messages}
    body = json.dumps(content | {"response_format": prompt.response_format}).encode()
    request = urllib.request.Request(url + "/chat/completions", data=body)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def test_it_refuses_what_its_rules_cannot_score(healthy):
    prompt = prompt_of(failures(2))
    with pytest.raises(urllib.error.HTTPError) as caught:
        ask(healthy.url, prompt)
    message = json.load(caught.value)["error"]["message"]
    assert message.startswith("not a request from hgrpo's judge")
    chess = json.loads(json.dumps(prompt.messages).replace("alfworld", "go"))
    with pytest.raises(urllib.error.HTTPError) as caught:
        ask(healthy.url, replace(prompt, messages=chess))
    message = json.load(caught.value)["error"]["message"]
    assert "unknown environment 'go'; known: alfworld" in message


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"model": "offline-rubric"}', b'{"model": 1, "messages": [3]}']
)
def test_a_request_that_is_none_is_refused(healthy, body):
    request = urllib.request.Request(healthy.url + "/chat/completions", data=body)
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    assert caught.value.code == 400
    assert "message" in json.load(caught.value)["error"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_cleanly_with_a_request_in_its_hands(tmp_path, number):
    with serve("--fault", "timeout=1") as server:
        held = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import sys, urllib.request as u; u.urlopen(sys.argv[1], data=b'{}')",
                server.url + "/chat/completions",
            ],
            stderr=subprocess.PIPE,
        )
        while server.stats()["timeout"] == 0:
            assert held.poll() is None
            time.sleep(0.02)
        server.process.send_signal(number)
        out, _ = server.process.communicate(timeout=60)
        assert server.process.returncode == 0
        assert out == ""
        held.communicate(timeout=60)


def test_it_writes_no_key_and_no_noise(tmp_path, judge_of, monkeypatch):
    key = "sk-very-secret-0123456789"
    monkeypatch.setenv("JUDGE_KEY", key)
    options = [option for fault in FAULTS for option in ("--fault", f"{fault}=0.3")]
    with serve(*options) as server:
        judge = judge_of(
            server, base_url=server.url, api_key_env="JUDGE_KEY", timeout_s=0.3, fallback_limit=1.0
        )
        judge.assign(group(failures(8)))
        code, out = server.stop()
    assert code == 0
    assert out == ""


@pytest.mark.parametrize("fault", ["tea=0.2", "drop", "drop=2", "drop=-1", "drop=x"])
def test_a_mistaken_fault_is_named(fault):
    done = subprocess.run(
        [sys.executable, "-m", "hgrpo.cli.judge_server", "--fault", fault],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 2
    assert f"{fault!r}: expected NAME=SHARE" in done.stderr


def test_the_help_shows_every_fault_with_an_example():
    done = subprocess.run(
        [sys.executable, "-m", "hgrpo.cli.judge_server", "--help"],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert all(f"{fault}=0.2 " in done.stdout for fault in FAULTS)


def test_every_fault_has_its_count():
    assert set(FAULTS.values()) <= set(CALL_FAILURES)
    assert GOAL in ROOM
