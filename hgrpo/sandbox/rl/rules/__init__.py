"""Terms of the rules: each turns a batch, as seen under the current weights, into a loss per seed.

Formulas and sources stand in `hgrpo.learning.objectives`; `hgrpo.sandbox.rl.declared` lists the
rules.
"""
