"""Rows of a log, one for each seed."""

from collections.abc import Mapping, Sequence

from torch import Tensor

Row = dict[str, float | int | str]


def seed_rows(
    seeds: Sequence[int], head: Mapping[str, float | int | str], columns: Mapping[str, Tensor]
) -> list[Row]:
    """One row for each seed: `head`, the seed, and its numbers out of `columns` [S]."""
    values = {name: column.tolist() for name, column in columns.items()}
    return [
        {**head, "seed": seed, **{name: column[index] for name, column in values.items()}}
        for index, seed in enumerate(seeds)
    ]
