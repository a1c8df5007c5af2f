"""Tasks shared by several pieces; importing this package does not import torch."""

REVERSALS = ("token_reversal", "masked_reversal")
CHAINS = ("chain_reversal", "chain_arithmetic", "format_answer")
