"""The piece vpo: a policy emits sets of answers with two rewards each. Slots receive the credit."""
