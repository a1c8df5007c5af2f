"""Terms of the losses: each turns a batch, under the current weights, into a loss per seed.

Formulas and sources stand in `hgrpo.learning.objectives`; `hgrpo.sandbox.opd.declared` lists them.
"""
