"""Judge that calls a language model at an OpenAI-compatible HTTP address.

Failed calls are retried with tenacity and not by the openai client, so that every request is
counted and checked against the caps. The timeout applies to the connection and to each wait for
data. A whole call may therefore take longer than the timeout.
"""

import ipaddress
import logging
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from urllib.parse import urlsplit

import openai
import tenacity

from hgrpo.credit.judge.accounting import Account, output_limit
from hgrpo.credit.judge.protocol import CALL_FAILURES, Answers, CallError, Judgement, Prompt, Usage
from hgrpo.credit.judge.scores import parse
from hgrpo.credit.judge.settings import Settings
from hgrpo.errors import UserError

_LOG = logging.getLogger(__name__)
_LONGEST_PAUSE_S = 60.0
_RETRIED = {*CALL_FAILURES} - {"quota", "rejected"}
_MISTAKES = {
    401: "the server rejected the API key",
    403: "the API key has no permission for this request",
    404: "the address or model does not exist",
}


class EndpointJudge:
    """A `protocol.Judge` that sends prompts to one address and parses scores from the answers."""

    def __init__(self, settings: Settings, key: str, account: Account):
        self._settings = settings
        self._key = key
        self._account = account
        self._judge = f"judge: model {settings.model!r} at {settings.base_url}"
        self._stop = threading.Event()
        self._warned: set[str] = set()
        # Do not use a proxy for a loopback address, because the proxy cannot reach it.
        local = _is_loopback(settings.base_url)
        transport = openai.DefaultHttpxClient(trust_env=False) if local else None
        self._client = openai.OpenAI(
            base_url=settings.base_url,
            api_key=key or "none",
            timeout=settings.timeout_s,
            max_retries=0,
            http_client=transport,
        )

    def ask_all(self, prompts: Mapping[str, Prompt]) -> Answers:
        """Yield answers as they arrive, with at most `concurrency` concurrent calls.

        Raises UserError if the server rejects the API key, the address or the model, or if the
        account's database cannot be used.
        """
        if not prompts:
            return
        self._stop.clear()
        with ThreadPoolExecutor(min(self._settings.concurrency, len(prompts))) as pool:
            names = {pool.submit(self._ask, prompt): name for name, prompt in prompts.items()}
            try:
                for future in as_completed(names):
                    error = future.exception()
                    if error is not None and not isinstance(error, CallError):
                        raise error
                    yield names[future], error or future.result()
            finally:
                # After an error or early stop, start no calls and do not wait for running ones.
                self._stop.set()
                pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, prompt: Prompt) -> Judgement:
        attempts = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(self._settings.retries + 1),
            retry=tenacity.retry_if_exception(
                lambda error: isinstance(error, CallError) and error.reason in _RETRIED
            ),
            wait=self._pause,
            sleep=tenacity.sleep_using_event(self._stop),
            reraise=True,
        )
        return attempts(lambda: self._once(prompt, attempts.statistics["attempt_number"] > 1))

    def _once(self, prompt: Prompt, retry: bool) -> Judgement:
        if self._stop.is_set():
            raise CallError("connection", "the run is stopping")
        try:
            aside = self._account.begin(prompt, retry)
        except CallError as cap:
            self._warn(cap)
            raise
        try:
            content, model = _content_and_model(self._send(prompt, aside))
            return Judgement(parse(content, prompt.turns), model)
        except CallError as failure:
            self._account.count(**{f"failed_{failure.reason}": 1})
            self._warn(failure)
            raise

    def _send(self, prompt: Prompt, aside: float) -> object:
        try:
            completion = self._client.chat.completions.create(
                model=self._settings.model,
                messages=prompt.messages,
                response_format=prompt.response_format,
                temperature=self._settings.temperature,
                max_completion_tokens=output_limit(prompt, self._settings),
            )
        except openai.APIStatusError as error:
            self._account.settle(aside, 0.0)
            failure = self._refusal(error)
        except openai.APITimeoutError:
            self._account.answered(aside, None)
            failure = CallError("timeout", f"no answer within {self._settings.timeout_s:g} s")
        except openai.APIConnectionError as error:
            self._account.answered(aside, None)
            failure = CallError("connection", str(error.__cause__ or error))
        except (openai.OpenAIError, ValueError, RecursionError):
            # ValueError: the body is not JSON, although the header declares JSON. RecursionError:
            # the JSON is nested too deeply.
            self._account.answered(aside, None)
            failure = CallError("malformed", "the answer is not a chat completion")
        else:
            self._account.answered(aside, _usage(completion))
            return completion
        # Raise outside of `except`, so that Python does not attach the client's error. That error
        # contains the request, and therefore the API key.
        raise failure

    def _refusal(self, error: openai.APIStatusError) -> CallError | UserError:
        status = error.status_code
        if status in _MISTAKES:
            self._account.count(failed_rejected=1)
            return UserError(f"{self._judge}: {_MISTAKES[status]} (HTTP {status})")
        if status == 429:
            reason = "quota" if error.code == "insufficient_quota" else "rate_limit"
        else:
            reason = "server" if status >= 500 or status in {408, 409} else "rejected"
        return CallError(reason, str(error), _retry_after(error))

    def _pause(self, state: tenacity.RetryCallState) -> float:
        first = self._settings.backoff_s
        jitter = tenacity.wait_random(0, first)
        backoff = tenacity.wait_exponential(first, max=_LONGEST_PAUSE_S) + jitter
        error = state.outcome.exception() if state.outcome else None
        wish = error.retry_after if isinstance(error, CallError) else 0.0
        return min(max(backoff(state), wish), _LONGEST_PAUSE_S)

    def _warn(self, failure: CallError) -> None:
        if failure.reason in self._warned:
            return
        self._warned.add(failure.reason)
        text = str(failure)
        if self._key:
            text = text.replace(self._key, "***")
        _LOG.warning("%s: %s: %s", self._judge, failure.reason, text[:300])


def _is_loopback(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _retry_after(error: openai.APIStatusError) -> float:
    try:
        return max(0.0, float(error.response.headers.get("retry-after", 0)))
    except ValueError:  # the header may contain a date instead of seconds
        return 0.0


# The openai client does not validate answers. It returns a string if an answer is not JSON.
def _content_and_model(completion: object) -> tuple[str, str]:
    try:
        content, model = completion.choices[0].message.content, completion.model
    except (AttributeError, IndexError, TypeError):
        content = model = None
    if not isinstance(content, str):
        raise CallError("malformed", "the answer contains no text")
    if not isinstance(model, str) or not model:
        raise CallError("malformed", "the answer contains no model name")
    return content, model


def _usage(completion: object) -> Usage | None:
    try:
        tokens = completion.usage.prompt_tokens, completion.usage.completion_tokens
    except AttributeError:
        return None
    return Usage(*tokens) if all(type(n) is int and n >= 0 for n in tokens) else None
