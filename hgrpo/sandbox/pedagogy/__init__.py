"""A teacher that knows the answer looks for rollouts from which a student can learn."""
