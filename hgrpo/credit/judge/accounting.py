"""Calls, tokens, dollars and failures of one process."""

import threading
from collections import Counter
from dataclasses import dataclass

from hgrpo.credit.judge.prompts import Prompt
from hgrpo.credit.judge.settings import Settings
from hgrpo.credit.judge.spend import Spend

# Why a call failed. `rejected`: no retry would help (a prompt that is too long, for example).
CALL_FAILURES = (
    "rate_limit",
    "quota",
    "timeout",
    "connection",
    "server",
    "rejected",
    "malformed",
    "wrong_length",
    "out_of_range",
)
# Why a trajectory got uniform credit: the failure of its last call, or a cap.
FALLBACKS = (*CALL_FAILURES, "call_cap", "dollar_cap")

# High estimates: English has more than 4 bytes a token, an entry of the answer about 12 tokens.
_BYTES_PER_TOKEN = 3
_TOKENS_PER_ENTRY = 32
_TOKENS_AROUND = 64


@dataclass(frozen=True)
class Usage:
    """Tokens of one answer, as the server reports them."""

    input_tokens: int
    output_tokens: int


def output_limit(prompt: Prompt, settings: Settings) -> int:
    """Most tokens of an answer: room for every entry and for `thinking_tokens`."""
    return _TOKENS_AROUND + _TOKENS_PER_ENTRY * sum(prompt.turns) + settings.thinking_tokens


class Account:
    """Counts of one process; safe to use from several threads.

    A call sets dollars aside before it starts, at a high estimate: 3 bytes a token of the prompt,
    and the longest answer. Its answer says what it cost, and replaces the estimate. A call without
    an answer may have been billed, so its estimate stays counted, as `dollars_unconfirmed`.

    Args:
        settings: the prices.
        spend: of the whole study; holds the caps.
    """

    def __init__(self, settings: Settings, spend: Spend):
        self._settings = settings
        self._spend = spend
        self._lock = threading.Lock()
        self.calls = 0
        self.retries = 0
        self.judged = 0
        self.cache_hits = 0
        self.tokens = Usage(0, 0)
        self.dollars = 0.0
        self.dollars_unconfirmed = 0.0
        self.failures: Counter[str] = Counter()
        self.fallbacks: Counter[str] = Counter()

    def begin(self, prompt: Prompt, retry: bool) -> float:
        """Count a call before it starts, and return the dollars set aside for it.

        Raises:
            CapError: the call would pass a cap of the study; it is not counted.
        """
        aside = self._estimate(prompt)
        self._spend.set_aside(aside)
        with self._lock:
            self.calls += 1
            self.retries += retry
        return aside

    def answered(self, aside: float, usage: Usage | None) -> None:
        """Replace the estimate by the cost; without usage the estimate stays."""
        if usage is None:
            with self._lock:
                self.dollars_unconfirmed += aside
            return
        dollars = self._cost(usage)
        self._spend.settle(aside, dollars)
        with self._lock:
            self.dollars += dollars
            self.tokens = Usage(
                self.tokens.input_tokens + usage.input_tokens,
                self.tokens.output_tokens + usage.output_tokens,
            )

    def refused(self, aside: float) -> None:
        """Take the estimate back: a call that the server refuses costs nothing."""
        self._spend.settle(aside, 0.0)

    def failed(self, reason: str) -> None:
        """Count a call without a judgement."""
        with self._lock:
            self.failures[reason] += 1

    @property
    def fallback_share(self) -> float:
        """Share of the judged trajectories that got uniform credit; 0 if none was judged."""
        return self.fallbacks.total() / self.judged if self.judged else 0.0

    def report(self) -> dict[str, float]:
        """All counts; the keys are the same every time."""
        with self._lock:
            return {
                "judged": self.judged,
                "cache_hits": self.cache_hits,
                "calls": self.calls,
                "retries": self.retries,
                "input_tokens": self.tokens.input_tokens,
                "output_tokens": self.tokens.output_tokens,
                "dollars": self.dollars,
                "dollars_unconfirmed": self.dollars_unconfirmed,
                "fallbacks": self.fallbacks.total(),
                "fallback_share": self.fallback_share,
                **{f"failed_{reason}": self.failures[reason] for reason in CALL_FAILURES},
                **{f"fallback_{reason}": self.fallbacks[reason] for reason in FALLBACKS},
            }

    def _estimate(self, prompt: Prompt) -> float:
        size = sum(len(message["content"].encode()) for message in prompt.messages)
        return self._cost(Usage(size // _BYTES_PER_TOKEN, output_limit(prompt, self._settings)))

    def _cost(self, usage: Usage) -> float:
        prices = self._settings
        return (
            usage.input_tokens * prices.dollars_per_million_input
            + usage.output_tokens * prices.dollars_per_million_output
        ) / 1e6
