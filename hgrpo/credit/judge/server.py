"""Serves the offline rubric through an OpenAI-compatible chat endpoint."""

import hashlib
import json
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import get_args

from hgrpo.credit.judge import rubric
from hgrpo.credit.judge.protocol import answer_format
from hgrpo.credit.judge.settings import RUBRIC, Variant
from hgrpo.errors import UserError
from hgrpo.games.kinds import load

_LARGEST_BODY = 64 * 2**20
# If several faults are drawn for a request, the first one in this order is used.
FAULTS = ("rate-limit", "drop", "timeout", "malformed", "wrong-length")


class FaultPlan:
    """Draws random faults for requests, to test the client.

    Faults are drawn independently of each other. For example, if five faults have the probability
    0.2, 0.8^5 = 33% of requests are answered without a fault. Draws depend on the seed, the
    request's body and the number of earlier requests with the same body.
    """

    def __init__(self, shares: Mapping[str, float], seed: int):
        self._shares = dict(shares)
        self._seed = seed
        self._sent: Counter[bytes] = Counter()
        self._lock = threading.Lock()

    def draw(self, body: bytes) -> str | None:
        """Draw the fault of a request: one of `FAULTS`, or None."""
        digest = hashlib.sha256(body).digest()
        with self._lock:
            attempt = self._sent[digest]
            self._sent[digest] += 1
        for fault in FAULTS:
            name = f"{self._seed}/{fault}/{attempt}/".encode() + digest
            number = int.from_bytes(hashlib.sha256(name).digest()[:8], "big") / 2**64
            if number < self._shares.get(fault, 0.0):
                return fault
        return None


class JudgeServer(ThreadingHTTPServer):
    """Serves the offline rubric, with the faults of a `FaultPlan`."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], faults: FaultPlan):
        super().__init__(address, _Handler)
        self.faults = faults
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        return f"http://{host}:{port}/v1"

    def count(self, fate: str, **tokens: int) -> None:
        """Count a request by its outcome ("answered", "refused" or a fault), and its tokens."""
        with self._lock:
            self._counts.update({"requests": 1, fate: 1, **tokens})

    def stats(self) -> dict[str, int]:
        """Return counts of requests by outcome, and of tokens, including zeros."""
        keys = ("requests", "answered", "refused", *FAULTS, "input_tokens", "output_tokens")
        with self._lock:
            return {key: self._counts[key] for key in keys}

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore closed connections; print any other error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class RefusalError(Exception):
    """A request was refused."""

    def __init__(self, message: str, status: int = 400, code: str = "invalid_request"):
        super().__init__(message)
        self.status = status
        self.code = code


class _Handler(BaseHTTPRequestHandler):
    server: JudgeServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # use a buffer, so that header and body are sent in one packet

    def do_GET(self) -> None:
        if self.path == "/stats":
            self._send(200, self.server.stats())
        else:
            self._refuse(RefusalError(f"no such path: {self.path}", 404, "not_found"))

    def do_POST(self) -> None:
        try:
            body = self._body()
            if self.path != "/v1/chat/completions":
                raise RefusalError(f"no such path: {self.path}", 404, "not_found")
            self._complete(body)
        except RefusalError as refusal:
            self.server.count("refused")
            self._refuse(refusal)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, because a request may contain an API key. /stats returns counts instead."""

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _LARGEST_BODY:
            self.close_connection = True
            raise RefusalError(f"the body must have at most {_LARGEST_BODY} bytes", 413, "body")
        return self.rfile.read(int(length))

    def _complete(self, body: bytes) -> None:
        fault = self.server.faults.draw(body)
        if fault in {"rate-limit", "drop", "timeout"}:
            self.server.count(fault)
        if fault == "rate-limit":
            self._refuse(RefusalError("slow down", 429, "rate_limit_exceeded"))
        elif fault in {"drop", "timeout"}:
            self.close_connection = True
            if fault == "timeout":
                self.rfile.read(1)  # returns when the client closes the connection
        else:
            completion = complete(body, fault)
            usage = completion["usage"]
            self.server.count(
                fault or "answered",
                input_tokens=usage["prompt_tokens"],
                output_tokens=usage["completion_tokens"],
            )
            self._send(200, completion)

    def _refuse(self, refusal: RefusalError) -> None:
        code = refusal.code
        error = {"message": str(refusal), "type": code, "code": code, "param": None}
        self._send(refusal.status, {"error": error})

    def _send(self, status: int, payload: dict) -> None:
        content = json.dumps(payload).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def complete(body: bytes, fault: str | None = None) -> dict:
    """Return the completion that answers a request, corrupted by `fault` unless it is None.

    Raises RefusalError unless the request has the format of `EndpointJudge`.
    """
    try:
        request = json.loads(body)
        texts = [message["content"] for message in request["messages"]]
        model, form = request["model"], request["response_format"]
        variant = next(known for known in get_args(Variant) if form == answer_format(known))
        environment, goal, records = rubric.read(texts[-1])
        scores = rubric.judge(load(environment).judge_text(), goal, records)
        content = rubric.answer(scores, variant)
    except (AttributeError, LookupError, TypeError, ValueError, StopIteration, UserError) as error:
        raise RefusalError(f"not a request from hgrpo's judge: {error}") from None
    if model != RUBRIC:
        raise RefusalError(f"expected model {RUBRIC!r}, got {model!r}", 404, "model_not_found")
    if fault == "wrong-length":
        scores[-1].pop()
        content = rubric.answer(scores, variant)
    if fault == "malformed":
        content = content[: len(content) // 2]
    reply = {"role": "assistant", "content": content}
    prompt_tokens = rubric.count_tokens(*texts)
    used = {"prompt_tokens": prompt_tokens, "completion_tokens": rubric.count_tokens(content)}
    return {
        "id": "chatcmpl-offline-rubric",
        "object": "chat.completion",
        "created": 0,
        "model": RUBRIC,
        "choices": [{"index": 0, "message": reply, "finish_reason": "stop"}],
        "usage": used | {"total_tokens": sum(used.values())},
    }
