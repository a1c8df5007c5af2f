"""EndpointJudge against a scripted server: every failure, and no key in any output."""

import json
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from judge_cases import account_of, counted, failures, group, prompt_of, settings

from hgrpo.credit.base import Context
from hgrpo.credit.judge import make
from hgrpo.credit.judge.endpoint import EndpointJudge
from hgrpo.credit.judge.protocol import CallError
from hgrpo.errors import UserError

KEY = "sk-very-secret-0123456789"
PRICED = {"dollars_per_million_input": 1.0, "dollars_per_million_output": 10.0}


def completion(content='{"scores": %s}', usage=(100, 20), **changes):
    """The body of a chat completion for the four turns of `failures`."""
    scores = json.dumps([{"turn": i, "score": i} for i in range(4)])
    text = content % scores if isinstance(content, str) and "%s" in content else content
    body = {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "judge-2024",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop",
            }
        ],
    }
    if usage:
        body["usage"] = dict(
            zip(("prompt_tokens", "completion_tokens"), usage, strict=True), total_tokens=sum(usage)
        )
    return body | changes


def error(message, code="x"):
    return {"error": {"message": message, "code": code, "type": code, "param": None}}


class Scripted(ThreadingHTTPServer):
    """Answers with (status, body[, headers]) in turn, the last one for ever; None hangs up."""

    daemon_threads = True

    def __init__(self, *answers):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = list(answers)
        self.requests = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.headers, json.loads(body)))
        answers = self.server.answers
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if answer is None:
            return
        status, payload, *headers = answer
        text = payload if isinstance(payload, str) else json.dumps(payload)
        # A server that repeats what it was sent, as a careless one may.
        text = text.replace("SENT", self.headers.get("Authorization", ""))
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or [{}])[0]}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args):
        pass


@pytest.fixture
def scripted():
    servers = []

    def start(*answers):
        server = Scripted(*answers)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def judge_of(tmp_path, monkeypatch):
    """A judge with a key in the environment, asking the given server."""
    monkeypatch.setenv("JUDGE_KEY", KEY)

    def build(server, **changes):
        chosen = {"model": "judge", "base_url": server.url, "api_key_env": "JUDGE_KEY"} | changes
        context = Context("alfworld", cache_dir=tmp_path)
        patient = {"retries": 2, "concurrency": 1, "fallback_limit": 1}
        return make(settings(**(patient | chosen)), context)

    return build


def test_a_call_says_what_the_settings_say(scripted, judge_of):
    server = scripted((200, completion()))
    judge = judge_of(server, temperature=0.5, thinking_tokens=1000, **PRICED)
    (row,) = judge.assign(group(failures(1)))
    assert row.tolist() == pytest.approx([-0.15, -0.05, 0.05, 0.15])
    ((headers, body),) = server.requests
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert (body["model"], body["temperature"]) == ("judge", 0.5)
    assert body["max_completion_tokens"] == 64 + 4 * 32 + 1000
    assert body["response_format"]["json_schema"]["strict"] is True
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    report = counted(judge)
    assert (report["calls"], report["input_tokens"], report["output_tokens"]) == (1, 100, 20)
    assert report["dollars"] == pytest.approx(3e-4)
    assert report["dollars_unconfirmed"] == 0.0


@pytest.mark.parametrize(
    "content",
    [
        'Sure!\n```json\n{"scores": %s}\n```\nTurn 3 decides.',
        '<think>Turn 0 gets {"scores": [1]}</think>{"Scores": %s}',
        '{"scores": ["0", "1/10", "2.0", 3,]}',
    ],
)
def test_a_server_that_ignores_the_response_format_is_read(scripted, judge_of, content):
    judge = judge_of(scripted((200, completion(content))))
    (row,) = judge.assign(group(failures(1)))
    assert row.tolist() == pytest.approx([-0.15, -0.05, 0.05, 0.15])
    assert counted(judge)["fallbacks"] == 0


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((429, error("slow down")), "rate_limit"),
        ((503, "<html>oops</html>"), "server"),
        (None, "connection"),
        ((200, "<html>hello</html>", {"Content-Type": "text/html"}), "malformed"),
        ((200, "[" * 200_000), "malformed"),
        ((200, completion(choices=None)), "malformed"),
        ((200, completion(model=None)), "malformed"),
        ((200, completion(content="I would say 7.")), "malformed"),
        ((200, completion(content='{"scores": %s}'.replace("%s", "[]"))), "wrong_length"),
    ],
)
def test_what_may_mend_is_tried_again(scripted, judge_of, answer, reason):
    server = scripted(answer, (200, completion()))
    judge = judge_of(server)
    judge.assign(group(failures(1)))
    report = counted(judge)
    assert (report["calls"], report["retries"], report["fallbacks"]) == (2, 1, 0)
    failed = {key: value for key, value in report.items() if key.startswith("failed_") and value}
    assert failed == {f"failed_{reason}": 1}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((400, error("too long")), "rejected"),
        ((413, "too large"), "rejected"),
        ((429, error("you exceeded your quota", "insufficient_quota")), "quota"),
    ],
)
def test_what_cannot_mend_is_not_tried_again(scripted, judge_of, answer, reason):
    server = scripted(answer)
    judge = judge_of(server)
    assert judge.assign(group(failures(1)))[0].tolist() == [0.0] * 4
    report = counted(judge)
    assert len(server.requests) == report["calls"] == 1
    assert report[f"fallback_{reason}"] == report[f"failed_{reason}"] == report["fallbacks"] == 1


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_mistake_in_the_settings_stops_the_run_at_once(scripted, judge_of, status):
    server = scripted((status, error("wrong: SENT")))
    with pytest.raises(UserError, match=rf"model 'judge' at {server.url}: .*\(HTTP {status}\)"):
        judge_of(server).assign(group(failures(1)))
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_a_key_is_in_no_log_and_no_error(scripted, judge_of, caplog, capfd, tmp_path, status):
    caplog.set_level(logging.DEBUG)
    judge = judge_of(scripted((status, error("you sent SENT, wrong"))), fallback_limit=0.0)
    with pytest.raises(UserError) as caught:
        judge.assign(group(failures(20)))
    chain = [caught.value, caught.value.__cause__, caught.value.__context__]
    outputs = [*map(repr, chain), caplog.text, *capfd.readouterr()]
    outputs += [json.dumps(counted(judge)), repr(vars(judge)), repr(judge.settings)]
    assert not [text for text in outputs if KEY in text]
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and KEY.encode() in p.read_bytes()]
    if status != 401:
        assert "you sent Bearer ***, wrong" in caplog.text


def test_an_answer_without_usage_keeps_its_estimate(scripted, judge_of):
    judge = judge_of(scripted((200, completion(usage=None))), **PRICED)
    judge.assign(group(failures(1)))
    report = counted(judge)
    assert report["dollars"] == report["input_tokens"] == 0
    assert report["dollars_unconfirmed"] > 0
    assert report["fallbacks"] == 0


def test_where_no_key_is_needed_none_is_sent(scripted, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = scripted((200, completion()))
    context = Context("alfworld", cache_dir=tmp_path)
    make(settings(base_url=server.url, api_key_env=None), context).assign(group(failures(1)))
    ((headers, _),) = server.requests
    assert KEY not in str(headers)


def test_a_loopback_address_ignores_the_environment_s_proxy(scripted, judge_of, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    judge = judge_of(scripted((200, completion())), retries=0)
    judge.assign(group(failures(1)))
    assert counted(judge)["fallbacks"] == 0


def test_no_more_calls_are_under_way_than_allowed(scripted, judge_of):
    lock, now, most = threading.Lock(), [0], [0]
    meet = threading.Barrier(3, timeout=20)
    server = scripted((200, completion()))
    judge = judge_of(server, concurrency=3)
    send = judge.judge._send

    def watched(prompt, aside):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        meet.wait()  # three at a time get here, or this breaks
        try:
            return send(prompt, aside)
        finally:
            with lock:
                now[0] -= 1

    judge.judge._send = watched
    judge.assign(group(failures(9)))
    assert most[0] == 3
    assert counted(judge)["calls"] == 9


@pytest.mark.parametrize(
    ("backoff", "attempt", "retry_after", "low", "high"),
    [
        (0.0, 1, 0.0, 0.0, 0.0),
        (1.0, 1, 0.0, 1.0, 2.0),
        (1.0, 3, 0.0, 4.0, 5.0),
        (1.0, 1, 7.0, 7.0, 7.0),
        (1.0, 4, 7.0, 8.0, 9.0),
        (1.0, 50, 0.0, 60.0, 60.0),
        (0.0, 1, 9999.0, 60.0, 60.0),
    ],
)
def test_pauses_double_and_follow_retry_after(tmp_path, backoff, attempt, retry_after, low, high):
    chosen = settings(backoff_s=backoff, base_url="http://127.0.0.1:9/v1")
    judge = EndpointJudge(chosen, "", account_of(tmp_path))
    failure = CallError("rate_limit", retry_after=retry_after)
    state = SimpleNamespace(
        attempt_number=attempt, outcome=SimpleNamespace(exception=lambda: failure)
    )
    assert low <= judge._pause(state) <= high


@pytest.mark.parametrize(
    ("answer", "may_be_billed"),
    [((429, error("slow down")), False), ((500, error("oops")), False), (None, True)],
)
def test_a_refusal_costs_nothing_and_a_lost_answer_may(scripted, judge_of, answer, may_be_billed):
    judge = judge_of(scripted(answer), retries=0, **PRICED)
    judge.assign(group(failures(1)))
    assert counted(judge)["dollars"] == 0.0
    assert (counted(judge)["dollars_unconfirmed"] > 0) is may_be_billed
    assert (judge.account.so_far()[1] > 0) is may_be_billed


@pytest.mark.parametrize(("header", "seconds"), [("12", 12.0), ("-3", 0.0)])
def test_retry_after_is_read(scripted, tmp_path, header, seconds):
    server = scripted((429, error("slow down"), {"Retry-After": header}))
    chosen = settings(retries=0, base_url=server.url)
    judge = EndpointJudge(chosen, "", account_of(tmp_path))
    ((_, failure),) = judge.ask_all({"a": prompt_of(failures(1))})
    assert (failure.reason, failure.retry_after) == ("rate_limit", seconds)
