"""Errors that users can mend; command lines print them without a traceback."""


class UserError(Exception):
    """Bad input: the message names the file, key or value, and what was expected."""


class TrainingError(UserError):
    """Training cannot go on, for example because a loss is not finite; finished steps are kept."""


def one_line(error: Exception) -> str:
    """The text of a library's error on one line, to be part of a message."""
    return " ".join(str(error).split())
