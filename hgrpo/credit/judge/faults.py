"""Deliberate faults of a judge's server, for drills. Each hits a chosen share of the requests."""

import hashlib
import threading
from collections import Counter
from collections.abc import Mapping

# Faults are drawn in this order; the first one that is drawn happens.
FAULTS = ("rate-limit", "drop", "timeout", "malformed", "wrong-length")


class FaultPlan:
    """Says which requests go wrong, and how.

    Each fault is drawn separately for each request: five faults at 0.2 leave 0.8^5 = 33 % of the
    requests unharmed. A draw depends on the seed, on the request's body and on how often that body
    was sent before. The order of different requests does not matter.
    """

    def __init__(self, shares: Mapping[str, float], seed: int):
        self._shares = dict(shares)
        self._seed = seed
        self._sent: Counter[bytes] = Counter()
        self._lock = threading.Lock()

    def draw(self, body: bytes) -> str | None:
        """The fault of this request, a member of FAULTS, or None."""
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
