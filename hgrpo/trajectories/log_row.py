"""Columns of a training-log row: totals over all play, and collapse metrics.

All play consists of rollouts, including those added by dynamic sampling, and continuations for
credit. A continuation counts as one trajectory, with its new replies and with the tokens of the
whole sequence.

Importing this module imports no torch.
"""

from collections.abc import Mapping, Sequence

# The turn taken from each sampled trajectory: its first turn, or one drawn uniformly.
FIRST, ANY = "first_turn", "any_turn"
_PREFIX = "collapse"

Numbers = Mapping[str, float | None]

# Quantity -> the columns it sums.
ALL_PLAY = {
    "trajectories": ("n_trajectories", "cf_branches"),
    "replies": ("n_turns", "cf_replies"),
    "tokens": ("n_forward_tokens", "cf_tokens"),
}


def all_play(rows: Sequence[Mapping]) -> dict[str, int]:
    """Sum log rows, by the names in `ALL_PLAY`; missing columns of continuations count as 0."""
    return {
        name: sum(int(row.get(column, 0)) for row in rows for column in columns)
        for name, columns in ALL_PLAY.items()
    }


def as_row(versions: Mapping[str, Numbers]) -> dict[str, float | None]:
    """Convert the metrics of both versions, `FIRST` and `ANY`, to log entries."""
    return {
        f"{_PREFIX}_{version}_{name}": value
        for version, numbers in versions.items()
        for name, value in numbers.items()
    }


def from_row(row: Mapping) -> dict[str, dict[str, float | None]]:
    """The inverse of `as_row` for a whole log row; empty if nothing was measured."""
    versions = {}
    for version in (FIRST, ANY):
        start = f"{_PREFIX}_{version}_"
        numbers = {k.removeprefix(start): v for k, v in row.items() if k.startswith(start)}
        versions |= {version: numbers} if numbers else {}
    return versions


def in_summary(rows: Sequence[Mapping]) -> dict[str, dict]:
    """The entry `collapse` of a round's summary, from its log rows; empty if nothing was measured.

    Values are those of the last step.
    """
    versions = from_row(rows[-1]) if rows else {}
    return {_PREFIX: versions} if versions else {}
