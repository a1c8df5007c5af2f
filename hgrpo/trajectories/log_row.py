"""Columns of a step's row in the training log: all play, and the numbers of collapse.

All play is the rollouts of a run and the continuations of its credit. A continuation is one
trajectory, although it starts midway. Its replies are the new ones, and its tokens those of the
whole sequence. The groups that dynamic sampling adds are rollouts like all others.

Importing this module imports no torch.
"""

from collections.abc import Mapping, Sequence

# Of each drawn trajectory its first turn, or a turn drawn among all of its own with equal chances.
FIRST, ANY = "first_turn", "any_turn"
_PREFIX = "collapse"

Numbers = Mapping[str, float | None]

# Each quantity is the sum of these columns.
ALL_PLAY = {
    "trajectories": ("n_trajectories", "cf_branches"),
    "replies": ("n_turns", "cf_replies"),
    "tokens": ("n_forward_tokens", "cf_tokens"),
}


def all_play(rows: Sequence[Mapping]) -> dict[str, int]:
    """Sums over log rows, by the names in `ALL_PLAY`; rows without continuations played none."""
    return {
        name: sum(int(row.get(column, 0)) for row in rows for column in columns)
        for name, columns in ALL_PLAY.items()
    }


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
