"""Pedagogy: a teacher that knows the answer learns to produce rollouts that teach a student."""
