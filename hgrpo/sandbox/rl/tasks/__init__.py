"""Tasks for `rl`: bandits with one action, and short output sequences of which one is right."""
