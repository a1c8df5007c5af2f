"""Ground-truth advantages of turns from continuations, and the accuracy of credit assigners."""
