"""The piece vpo: a policy emits sets of answers with two rewards each, and slots get credit."""
