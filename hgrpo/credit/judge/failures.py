"""Why a judge gave no judgement."""

# Why a call failed. `rejected`: no retry would help (the prompt is too long, for example).
CALL_FAILURES = (
    *("rate_limit", "quota", "timeout", "connection", "server", "rejected"),
    *("malformed", "wrong_length", "out_of_range"),
)
# Why a trajectory got uniform credit: its last call failed, or a cap was reached.
FALLBACKS = (*CALL_FAILURES, "call_cap", "dollar_cap")


class CallError(Exception):
    """A call without a judgement.

    Attributes:
        reason: one of `FALLBACKS`.
        retry_after: seconds the server asked to wait, or 0.
    """

    def __init__(self, reason: str, message: str = "", retry_after: float = 0.0):
        super().__init__(message or reason)
        self.reason = reason
        self.retry_after = retry_after
