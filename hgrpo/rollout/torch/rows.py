"""Rows of a forward pass, and what attends for them."""

from typing import NamedTuple, Protocol

from torch import Tensor


class Row(NamedTuple):
    """Where the new tokens of a row stand.

    Attributes:
        slot: the row's place in the cache.
        offset: index of its first new token among the packed tokens of all rows.
        length: number of its new tokens.
        start: position of the first new token in the row's own part of the cache.
        trunk: slot of the row that it branches from; None if it has all its positions itself.
        shared: how many of the trunk's positions stand before the row's own; 0 without a trunk.
    """

    slot: int
    offset: int
    length: int
    start: int
    trunk: int | None = None
    shared: int = 0

    def ended(self, offset: int) -> "Row":
        """The row's last new token alone, which stands at `offset`."""
        return self._replace(offset=offset, length=1, start=self.start + self.length - 1)


class Attends(Protocol):
    """The attention of one forward pass; it is made anew for each pass."""

    def attend(self, q: Tensor, kv: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Store the new keys and values in a layer's cache, and attend.

        Args:
            q: float32 [queries, heads, head dim], not rotated yet. The queries are those of all
                new tokens, or those of each row's last token.
            kv: keys, not rotated yet, and values of all new tokens, float32
                [tokens, 2, KV heads, head dim].
            keys, values: the layer's cache, float32 [slots, KV heads, max length, head dim].

        Returns:
            The attention of each query, float32 [queries, heads, head dim].
        """
