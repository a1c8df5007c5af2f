"""Tasks for `rl`: bandits with one action, and short sequences with one right output per input."""
