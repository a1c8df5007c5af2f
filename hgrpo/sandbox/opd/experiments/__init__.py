"""Runs of opd that are read side by side: the original's experiments and its comparison."""
