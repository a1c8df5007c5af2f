"""The pause between two looks at results that grow, as an option of commands that watch them."""

import argparse
import math

_DAY = 86_400.0


def pause(text: str) -> float:
    """Seconds between two looks, for argparse.

    Raises:
        argparse.ArgumentTypeError: not a positive number, or more than a day.
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
