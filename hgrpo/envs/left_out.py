"""Counts and names bad records of the user's files, which every environment leaves out."""

from collections import Counter
from pathlib import Path

from hgrpo.errors import UserError

_MOST_PRINTED = 20


def leave_out(counts: Counter[str], what: str, error: UserError, root: Path) -> None:
    """Count a bad record under a reason that quotes the first one's error; print the first few.

    Args:
        counts: reason -> number of records; updated here.
        what: what the record is, such as "level".
        root: the user's folder; names of files are given relative to it.
    """
    name = str(error).replace(f"{root}/", "")
    begins = f"bad {what}, the first: "
    reason = next((each for each in counts if each.startswith(begins)), begins + name)
    counts[reason] += 1
    if counts[reason] <= _MOST_PRINTED:
        print(f"left out: bad {what}: {name}")
