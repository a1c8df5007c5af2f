"""Faults for drills: what a judge's endpoint may do wrong, at shares of one's choosing."""

import hashlib
import threading
from collections import Counter
from collections.abc import Mapping

# In the order they are drawn in: the first that comes up happens.
FAULTS = ("rate-limit", "drop", "timeout", "malformed", "wrong-length")


class FaultPlan:
    """Says which requests go wrong, and how.

    Each fault is drawn on its own for each request, so that five at 0.2 leave 0.8^5 = 33 % of
    the requests whole. A draw depends on the seed, the request's body and how often that body
    was sent before, not on the order in which different requests arrive.
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
