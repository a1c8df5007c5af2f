"""Calls, tokens and dollars of one process: what was asked, what it cost, what went wrong."""

import threading
from collections import Counter
from dataclasses import dataclass

from hgrpo.credit.judge.prompts import Prompt
from hgrpo.credit.judge.settings import Settings
from hgrpo.credit.judge.spend import Spend

# Why a call failed; `rejected` is a refusal that no retry mends (a prompt too long, say).
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
# Why a trajectory got uniform credit: its last call's failure, or no call could be made.
FALLBACKS = (*CALL_FAILURES, "call_cap", "dollar_cap")

# Rounded to the safe side: English is above 4 bytes a token, an entry of the answer about 12.
_BYTES_PER_TOKEN = 3
_TOKENS_PER_ENTRY = 32
_TOKENS_AROUND = 64


@dataclass(frozen=True)
class Usage:
    """Tokens of one answer, as the server reports them."""

    input_tokens: int
    output_tokens: int


def output_limit(prompt: Prompt, settings: Settings) -> int:
    """Most tokens an answer may have: room for every entry, and for thinking if asked for."""
    return _TOKENS_AROUND + _TOKENS_PER_ENTRY * sum(prompt.turns) + settings.thinking_tokens


class Account:
    """Counts of one process; safe to use from several threads.

    A call's dollars are set aside before it is made, at an estimate on the safe side, and settled
    when its answer says what it took. A call whose answer never came may have been billed: its
    estimate stays counted against the cap, as `dollars_unconfirmed`. So the dollar cap holds as far
    as the estimate does: 3 bytes a token of the prompt, and the answer at its longest.

    Args:
        settings: the prices.
        spend: the study's, which holds the caps.
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
        """Count a call that is about to be made; returns the dollars set aside for it.

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
        """Settle a call that was answered; without usage it keeps its estimate."""
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
        """Settle a call that the server turned down: it costs nothing."""
        self._spend.settle(aside, 0.0)

    def failed(self, reason: str) -> None:
        """Count a call without a judgement."""
        with self._lock:
            self.failures[reason] += 1

    @property
    def fallback_share(self) -> float:
        """Share of judged trajectories that got uniform credit; 0 before the first one."""
        return self.fallbacks.total() / self.judged if self.judged else 0.0

    def report(self) -> dict[str, float]:
        """Everything counted, flat, with the same keys every time."""
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
