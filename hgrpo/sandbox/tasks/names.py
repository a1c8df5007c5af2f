"""Names of the tasks of sequences."""

REVERSALS = ("token_reversal", "masked_reversal")
CHAINS = ("chain_reversal", "chain_arithmetic", "format_answer")
