"""Pedagogy: a teacher who knows the answer searches for rollouts from which a student can learn."""
