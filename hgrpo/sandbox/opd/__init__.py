"""On-policy distillation: a student samples outputs and learns from a teacher's probabilities of
every next token.

The teacher is analytic and knows the right answer, so failures are due to the objective, not to the
teacher. `microscope` measures gradient estimators at fixed weights.
"""
