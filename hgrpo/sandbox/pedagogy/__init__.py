"""Pedagogy: a teacher that knows the answer learns to produce rollouts that a student can learn."""
