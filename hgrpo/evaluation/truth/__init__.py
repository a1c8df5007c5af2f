"""True advantages of turns by continuations, and the accuracy of credit assigners."""
