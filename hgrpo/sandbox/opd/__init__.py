"""On-policy distillation: a student samples outputs and learns from a teacher's next-token
probabilities along them.

The teacher is computed from the right answer, so failures are due to the objective and not to the
teacher. `microscope` measures gradient estimators at fixed weights.
"""
