"""The offline judge behind HTTP: what OpenAI's chat endpoint answers, from the rubric's rules."""

import json
import math
import select
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from hgrpo.credit.judge import rubric
from hgrpo.credit.judge.faults import FAULTS, FaultPlan
from hgrpo.credit.judge.prompts import answer_format

_LARGEST_BODY = 64 * 2**20


class JudgeServer(ThreadingHTTPServer):
    """The server; `stats` counts requests by their fate, and the tokens reported."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], faults: FaultPlan):
        super().__init__(address, _Handler)
        self.faults = faults
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    @property
    def url(self) -> str:
        """The base URL a client needs."""
        host, port = self.server_address[:2]
        return f"http://{host}:{port}/v1"

    def count(self, fate: str, **tokens: int) -> None:
        """Count one request: "answered", "refused" or a fault."""
        with self._lock:
            self._counts.update({"requests": 1, fate: 1, **tokens})

    def stats(self) -> dict[str, int]:
        """Counts so far, every key present."""
        keys = ("requests", "answered", "refused", *FAULTS, "input_tokens", "output_tokens")
        with self._lock:
            return {key: self._counts[key] for key in keys}

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that went away; the rest is an error of ours."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class RefusalError(Exception):
    """A request that gets an error for an answer."""

    def __init__(self, status: int, code: str, message: str):
        super().__init__(message)
        self.status = status
        self.code = code


class _Handler(BaseHTTPRequestHandler):
    server: JudgeServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body in one packet

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == "/stats":
            self._send(200, self.server.stats())
        elif path == "/v1/models":
            model = {"id": rubric.MODEL, "object": "model", "created": 0, "owned_by": "hgrpo"}
            self._send(200, {"object": "list", "data": [model]})
        else:
            self._send(404, _error("not_found", f"no such path: {path}"))

    def do_POST(self) -> None:
        try:
            body = self._body()
            if urlsplit(self.path).path != "/v1/chat/completions":
                raise RefusalError(404, "not_found", f"no such path: {self.path}")
            self._complete(body)
        except RefusalError as refusal:
            self.server.count("refused")
            self._send(refusal.status, _error(refusal.code, str(refusal)))

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: /stats has the counts, and a log could hold what should not be in one."""

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _LARGEST_BODY:
            self.close_connection = True
            raise RefusalError(413, "body", f"a body of at most {_LARGEST_BODY} bytes was expected")
        return self.rfile.read(int(length))

    def _complete(self, body: bytes) -> None:
        fault = self.server.faults.draw(body)
        if fault == "rate-limit":
            self.server.count(fault)
            self._send(429, _error("rate_limit_exceeded", "slow down"))
        elif fault in {"drop", "timeout"}:
            self.server.count(fault)
            self.close_connection = True
            if fault == "timeout":
                self._hold()
        else:
            completion = complete(body, fault)
            usage = completion["usage"]
            self.server.count(
                fault or "answered",
                input_tokens=usage["prompt_tokens"],
                output_tokens=usage["completion_tokens"],
            )
            self._send(200, completion)

    def _hold(self) -> None:
        """Wait until the client hangs up, or the server ends."""
        while not self.server.stopping.is_set():
            if select.select([self.connection], [], [], 0.2)[0]:
                return

    def _send(self, status: int, payload: dict) -> None:
        content = json.dumps(payload).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def complete(body: bytes, fault: str | None = None) -> dict:
    """The chat completion that answers a request's body, spoilt by `fault` if it is one of text.

    Raises:
        RefusalError: the request is not one of the judge's.
    """
    try:
        request = json.loads(body)
        model = request["model"]
        text = next(m["content"] for m in request["messages"] if m["role"] == "user")
        asked = request["response_format"]
        size = sum(len(m["content"].encode()) for m in request["messages"])
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration):
        raise RefusalError(
            400, "invalid_request", "no chat request with a response_format"
        ) from None
    if model != rubric.MODEL:
        raise RefusalError(
            404, "model_not_found", f"only {rubric.MODEL!r} is served, not {model!r}"
        )
    try:
        scores = rubric.judge(text)
    except rubric.RubricError as error:
        raise RefusalError(400, "invalid_request", str(error)) from None
    if fault == "wrong-length":
        scores[-1].pop()
    content = json.dumps(_answer(scores, asked))
    if fault == "malformed":
        content = content[: len(content) // 2]
    used = {"prompt_tokens": _tokens(size), "completion_tokens": _tokens(len(content))}
    return {
        "id": "chatcmpl-offline-rubric",
        "object": "chat.completion",
        "created": 0,
        "model": rubric.MODEL,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content},
                "finish_reason": "stop",
            }
        ],
        "usage": used | {"total_tokens": sum(used.values())},
    }


def _answer(scores: list[list[float]], asked: object) -> dict:
    lists = [[{"turn": i, "score": s} for i, s in enumerate(row)] for row in scores]
    if asked == answer_format("trajectory") and len(lists) == 1:
        return {"scores": lists[0]}
    if asked == answer_format("group"):
        return {"trajectories": [{"trajectory": k, "scores": x} for k, x in enumerate(lists)]}
    raise RefusalError(400, "invalid_request", "response_format asks for another form than scores")


def _tokens(size: int) -> int:
    return math.ceil(size / 4)


def _error(code: str, message: str) -> dict:
    return {"error": {"message": message, "type": code, "code": code, "param": None}}


def serve_in_background() -> str:
    """Serve on a free loopback port until this process ends; returns the base URL."""
    server = JudgeServer(("127.0.0.1", 0), FaultPlan({}, 0))
    threading.Thread(target=server.serve_forever, name="judge-server", daemon=True).start()
    return server.url
