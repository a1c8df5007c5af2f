"""The tasks of rl: single-action bandits, and short sequences with a right answer."""
