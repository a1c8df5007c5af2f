"""The type of a command-line option: the interval at which a command checks growing results."""

import argparse
import math

_DAY = 86_400.0


def pause(text: str) -> float:
    """Seconds between two checks, as a type for argparse.

    Raises:
        argparse.ArgumentTypeError: the text is not a positive number of at most a day.
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if 0 < seconds <= _DAY:
        return seconds
    raise argparse.ArgumentTypeError(
        f"seconds above 0 and up to {_DAY:.0f} were expected, not {text!r}"
    )
