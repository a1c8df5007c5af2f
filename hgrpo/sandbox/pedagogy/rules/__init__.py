"""What the teacher is paid for, how the student imitates, and the term of whoever explores.

Formulas and sources stand in `hgrpo.learning.objectives`; `hgrpo.sandbox.pedagogy.declared` lists
the rules.
"""
