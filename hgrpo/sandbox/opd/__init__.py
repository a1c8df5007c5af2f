"""On-policy distillation: a student samples outputs and learns from a teacher's probabilities of
every next token.

The teacher is analytic and knows the right answer, so a failure is the objective's, not the
teacher's. `microscope` measures estimators of the gradient at weights that never change.
"""
