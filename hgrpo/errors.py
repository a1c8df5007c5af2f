"""Errors that users cause and can mend; command lines print them without a traceback."""


class UserError(Exception):
    """Bad input: the message names the file, key or value, and what was expected."""
