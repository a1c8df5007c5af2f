"""Draws single random numbers quickly, by requesting them from NumPy in blocks."""

from collections.abc import Sequence
from typing import TypeVar

from hgrpo.games import streams

Item = TypeVar("Item")

# Number of draws per call to NumPy. 48 draws take about as long as the overhead of the call.
_STOCK = 48


class Draws:
    """Draws from the random stream with the name `parts` (see `hgrpo.games.streams`)."""

    def __init__(self, *parts: object) -> None:
        self._rng = streams.generator(*parts)
        self._stock: list[float] = []

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """A number in [low, high)."""
        if not self._stock:
            self._stock = self._rng.random(_STOCK).tolist()
        return low + (high - low) * self._stock.pop()

    def between(self, bounds: tuple[int, int]) -> int:
        """An integer in [low, high], inclusive."""
        low, high = bounds
        return low + int(self.uniform() * (high - low + 1))

    def pick(self, items: Sequence[Item]) -> Item:
        """A uniformly drawn element of `items`."""
        return items[int(self.uniform() * len(items))]

    def some(self, items: Sequence[Item], count: int) -> list[Item]:
        """Up to `count` different elements of `items`, in random order."""
        left = list(items)
        return [left.pop(int(self.uniform() * len(left))) for _ in range(min(count, len(left)))]
