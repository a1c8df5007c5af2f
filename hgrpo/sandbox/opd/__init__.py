"""On-policy distillation: a student learns from a teacher's next-token probabilities along outputs
that the student has sampled.

The teacher is computed from the right answer, so that failures are due to the objective and not to
the teacher. `microscope` measures gradient estimators at fixed weights.
"""
