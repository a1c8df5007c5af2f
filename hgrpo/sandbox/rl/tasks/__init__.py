"""The tasks of rl: bandits of one action, and short sequences with a right answer."""
