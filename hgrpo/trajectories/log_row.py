"""Columns of the training log that several modules use: totals and collapse metrics.

The totals of trajectories, replies and tokens include rollouts added by dynamic sampling, and
continuations played for credit. The replayed turns of a continuation are included in the total of
tokens, but not in the total of replies. This module does not import torch.
"""

from collections.abc import Mapping, Sequence

# Collapse metrics are computed over the first turn, or one random turn, of each trajectory.
FIRST, ANY = "first_turn", "any_turn"
_PREFIX = "collapse"

Numbers = Mapping[str, float | None]

# Maps each total to the columns that are summed.
ALL_PLAY = {
    "trajectories": ("n_trajectories", "cf_branches"),
    "replies": ("n_turns", "cf_replies"),
    "tokens": ("n_forward_tokens", "cf_tokens"),
}


def all_play(rows: Sequence[Mapping]) -> dict[str, int]:
    """Return the totals in `ALL_PLAY` over rows of the log; missing columns count as 0."""
    return {
        name: sum(int(row.get(column, 0)) for row in rows for column in columns)
        for name, columns in ALL_PLAY.items()
    }


def as_row(versions: Mapping[str, Numbers]) -> dict[str, float | None]:
    """Convert collapse metrics to columns of the log; the keys of `versions` are FIRST and ANY."""
    return {
        f"{_PREFIX}_{version}_{name}": value
        for version, numbers in versions.items()
        for name, value in numbers.items()
    }


def from_row(row: Mapping) -> dict[str, dict[str, float | None]]:
    """Collapse metrics in a row of the log, by FIRST and ANY; empty if the row has no metrics."""
    versions = {}
    for version in (FIRST, ANY):
        start = f"{_PREFIX}_{version}_"
        numbers = {k.removeprefix(start): v for k, v in row.items() if k.startswith(start)}
        versions |= {version: numbers} if numbers else {}
    return versions


def in_summary(rows: Sequence[Mapping]) -> dict[str, dict]:
    """Return {"collapse": metrics of the last row of the log}, or {} if this row has none."""
    versions = from_row(rows[-1]) if rows else {}
    return {_PREFIX: versions} if versions else {}
