"""The piece vpo: a policy emits sets of answers with two rewards each, and each slot gets credit."""
