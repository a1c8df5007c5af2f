"""Where a training log and a round's summary hold the numbers of collapse.

Importing this module imports no torch.
"""

from collections.abc import Mapping, Sequence

# Of each drawn trajectory its first turn, or a turn drawn among all of its own with equal chances.
FIRST, ANY = "first_turn", "any_turn"
_PREFIX = "collapse"

Numbers = Mapping[str, float | None]


def as_row(versions: Mapping[str, Numbers]) -> dict[str, float | None]:
    """Log entries of the numbers of each version, `FIRST` and `ANY`."""
    return {
        f"{_PREFIX}_{version}_{name}": value
        for version, numbers in versions.items()
        for name, value in numbers.items()
    }


def from_row(row: Mapping) -> dict[str, dict[str, float | None]]:
    """The inverse of `as_row`, from a whole log row; empty if nothing was measured."""
    versions = {}
    for version in (FIRST, ANY):
        start = f"{_PREFIX}_{version}_"
        numbers = {k.removeprefix(start): v for k, v in row.items() if k.startswith(start)}
        versions |= {version: numbers} if numbers else {}
    return versions


def in_summary(rows: Sequence[Mapping]) -> dict[str, dict]:
    """The entry `collapse` of a round's summary, from its log rows; empty if nothing was measured.

    It holds the numbers of the last step.
    """
    versions = from_row(rows[-1]) if rows else {}
    return {_PREFIX: versions} if versions else {}
