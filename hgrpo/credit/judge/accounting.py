"""Counts a process's calls to a judge and their cost, and enforces the study's caps."""

import threading

from hgrpo.credit.judge.cache import Database
from hgrpo.credit.judge.protocol import CALL_FAILURES, FALLBACKS, CallError, Prompt, Usage
from hgrpo.credit.judge.settings import Settings

_COUNTS = (
    *("judged", "cache_hits", "calls", "retries", "input_tokens", "output_tokens"),
    *("dollars", "dollars_unconfirmed", "fallbacks", "fallback_share"),
    *(f"failed_{reason}" for reason in CALL_FAILURES),
    *(f"fallback_{reason}" for reason in FALLBACKS),
)

# Constants that make estimated costs higher than typical costs. English text typically has over 4
# bytes per token, and an entry of an answer has about 12 tokens.
_BYTES_PER_TOKEN = 3
_TOKENS_PER_ENTRY = 32
_TOKENS_AROUND = 64

_HERE = "endpoint = :endpoint AND model = :model"
_SET_ASIDE = f"""UPDATE spend SET calls = calls + 1, dollars = dollars + :aside WHERE {_HERE}
  AND (:max_calls IS NULL OR calls < :max_calls)
  AND (:max_dollars IS NULL OR dollars + :aside <= :max_dollars) RETURNING calls"""


def output_limit(prompt: Prompt, settings: Settings) -> int:
    """Return the limit on output tokens: enough for an entry per turn, plus `thinking_tokens`."""
    return _TOKENS_AROUND + _TOKENS_PER_ENTRY * sum(prompt.turns) + settings.thinking_tokens


class Account:
    """Counts the calls of one process and enforces the caps of one model at one address.

    Before each call, `begin` reserves a high estimate of its cost, based on 3 bytes per prompt
    token and the longest allowed answer. After the call, the estimate is replaced by the actual
    cost. If the judge reports no token usage, the call may still have been billed. The estimate
    then remains reserved, and is also counted as `dollars_unconfirmed`.

    The caps apply to all jobs of a study together. A single SQL statement checks them and updates
    the totals, so that parallel jobs cannot jointly exceed a cap. The reservation of a killed job
    is never removed. Accounts are thread-safe. All methods raise UserError if the database cannot
    be used.
    """

    def __init__(self, settings: Settings, database: Database):
        self._settings = settings
        self._database = database
        self._judge = {"endpoint": settings.base_url, "model": settings.model}
        self._lock = threading.Lock()
        self._counts: dict[str, float] = dict.fromkeys(_COUNTS, 0)
        self._counts |= {"dollars": 0.0, "dollars_unconfirmed": 0.0}
        database.execute(
            "INSERT INTO spend VALUES (:endpoint, :model, 0, 0) ON CONFLICT DO NOTHING", self._judge
        )

    def begin(self, prompt: Prompt, retry: bool) -> float:
        """Reserve and return the dollars for a call. Raise CallError if it would exceed a cap."""
        size = sum(len(message["content"].encode()) for message in prompt.messages)
        longest = Usage(size // _BYTES_PER_TOKEN, output_limit(prompt, self._settings))
        aside = self._cost(longest)
        self.set_aside(aside)
        self.count(calls=1, retries=retry)
        return aside

    def answered(self, aside: float, usage: Usage | None) -> None:
        """Replace the reserved dollars `aside` with the cost, unless `usage` is None."""
        if usage is None:
            self.count(dollars_unconfirmed=aside)
            return
        dollars = self._cost(usage)
        self.settle(aside, dollars)
        self.count(dollars=dollars, **vars(usage))

    def count(self, **amounts: float) -> None:
        """Add amounts to counts of the report, given as name=amount."""
        with self._lock:
            for name, amount in amounts.items():
                self._counts[name] += amount

    def report(self) -> dict[str, float]:
        """Return all counts so far, including zeros."""
        with self._lock:
            counts = dict(self._counts)
        counts["fallback_share"] = counts["fallbacks"] / max(1, counts["judged"])
        return counts

    def set_aside(self, dollars: float) -> None:
        """Reserve a call and its estimated cost; CallError if this would exceed a cap."""
        caps = {"max_calls": self._settings.max_calls, "max_dollars": self._settings.max_dollars}
        if self._database.execute(_SET_ASIDE, {"aside": dollars} | self._judge | caps):
            return
        calls, spent = self.so_far()
        full = caps["max_calls"] is not None and calls >= caps["max_calls"]
        reason, cap = ("call_cap", "max_calls") if full else ("dollar_cap", "max_dollars")
        raise CallError(
            reason,
            f"credit.{cap}: another call could exceed the limit of {caps[cap]:g}; the study made "
            f"{calls} calls at a cost of {spent:.2f} dollars ({self._database.path}, table spend)",
        )

    def settle(self, aside: float, dollars: float) -> None:
        """Replace the reserved dollars `aside` with the cost. The cost of a refused call is 0."""
        if dollars != aside:
            self._database.execute(
                f"UPDATE spend SET dollars = dollars + (:dollars - :aside) WHERE {_HERE}",
                {"dollars": dollars, "aside": aside} | self._judge,
            )

    def so_far(self) -> tuple[int, float]:
        """Return the number of the study's calls, and the dollars spent or reserved."""
        query = f"SELECT calls, dollars FROM spend WHERE {_HERE}"
        return self._database.execute(query, self._judge)[0]

    def _cost(self, usage: Usage) -> float:
        into = usage.input_tokens * self._settings.dollars_per_million_input
        out = usage.output_tokens * self._settings.dollars_per_million_output
        return (into + out) / 1e6
