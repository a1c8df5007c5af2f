"""Where a training log and a round's summary hold the numbers of collapse.

Importing this module imports no torch.
"""

from collections.abc import Mapping, Sequence

# Of each drawn trajectory its first turn, or a turn drawn among all of its own with equal chances.
FIRST, ANY = "first_turn", "any_turn"
_PREFIX = "collapse"

Numbers = Mapping[str, float | None]


def as_row(found: Mapping[str, Numbers]) -> dict[str, float | None]:
    """Log entries of the numbers of each version, `FIRST` and `ANY`."""
    return {
        f"{_PREFIX}_{version}_{name}": value
        for version, numbers in found.items()
        for name, value in numbers.items()
    }


def from_row(row: Mapping) -> dict[str, dict[str, float | None]]:
    """What `as_row` made log entries of, from a log row; empty if nothing was measured."""
    found = {}
    for version in (FIRST, ANY):
        start = f"{_PREFIX}_{version}_"
        numbers = {k.removeprefix(start): v for k, v in row.items() if k.startswith(start)}
        found |= {version: numbers} if numbers else {}
    return found


def in_summary(rows: Sequence[Mapping]) -> dict[str, dict]:
    """The entry `collapse` of a round's summary, from its log rows; empty if nothing was measured.

    It holds the numbers of the last step.
    """
    found = from_row(rows[-1]) if rows else {}
    return {_PREFIX: found} if found else {}
