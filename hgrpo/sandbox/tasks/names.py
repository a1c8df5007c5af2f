"""Names of the tasks of sequences. Importing this module imports no torch."""

REVERSALS = ("token_reversal", "masked_reversal")
CHAINS = ("chain_reversal", "chain_arithmetic", "format_answer")
