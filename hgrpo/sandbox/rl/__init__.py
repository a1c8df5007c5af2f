"""Compares 31 update rules on bandits and short sequences, with detailed logs."""
