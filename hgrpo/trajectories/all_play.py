"""Counts all play of a run: its rollouts, and the continuations of its credit.

A continuation is one trajectory, although it starts midway. Its replies are the new ones; turns
that were only played again up to its start are none. Its tokens are those of the whole sequence.
The groups that dynamic sampling adds are rollouts like all others, so `n_trajectories` has them.
"""

from collections.abc import Mapping, Sequence

# Each quantity is the sum of these columns of a step's log row.
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
