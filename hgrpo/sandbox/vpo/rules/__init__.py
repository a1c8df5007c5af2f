"""How the rules score sets, and the term that they share.

Formulas and sources stand in `hgrpo.learning.objectives`; `hgrpo.sandbox.vpo.declared` lists the
rules.
"""
