"""On-policy distillation: a student learns from a teacher's next-token probabilities along outputs
that the student has sampled.

The teacher's probabilities are computed from the right answer. If training fails, the cause is
therefore the objective and not the teacher. `microscope` measures gradient estimators at fixed
weights.
"""
