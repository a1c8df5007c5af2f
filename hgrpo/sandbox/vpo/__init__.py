"""The piece vpo: a policy emits sets of answers with two rewards each. Credit is per slot."""
