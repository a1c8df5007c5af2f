"""Tasks that several pieces share. Importing this package imports no torch."""

REVERSALS = ("token_reversal", "masked_reversal")
CHAINS = ("chain_reversal", "chain_arithmetic", "format_answer")
