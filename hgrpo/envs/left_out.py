"""Leaves out, counts and names bad records of the user's files."""

from collections import Counter
from pathlib import Path

from hgrpo.errors import UserError

_MOST_PRINTED = 20


def leave_out(counts: Counter[str], what: str, error: UserError, root: Path) -> None:
    """Count a bad `what` under a reason that quotes the first one's error, and print it.

    Args:
        counts: reason -> number of records; updated here.
        root: folder that names of files are given relative to.
    """
    name = str(error).replace(f"{root}/", "")
    begins = f"bad {what}, the first: "
    reason = next((each for each in counts if each.startswith(begins)), begins + name)
    counts[reason] += 1
    if counts[reason] <= _MOST_PRINTED:
        print(f"left out: bad {what}: {name}")
