"""Attention of rows of different lengths over a KV cache with shared prefixes.

A conversation has one row of the cache. It can branch from a trunk, which is another row. The first
positions of the trunk are then the conversation's prefix, and its row contains only the suffix. All
branches attend to their trunk in one matrix product. Prefix and suffix are computed separately. The
two parts are combined, using their maximum scores and sums of weights, as
in "Hydragen: High-Throughput LLM Inference with Shared Prefixes", https://arxiv.org/abs/2402.05099.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

# Rows with 2 to `_NARROW` new tokens form one group. Rows with 1 new token form another.
_NARROW = 8
# Branches whose suffix has at most this length are grouped together.
_SHORT = 64


class Row(NamedTuple):
    """Positions of a row's new tokens.

    Attributes:
        slot: index of the row in the cache.
        offset: index of its first new token among the packed tokens of all rows.
        length: number of its new tokens.
        start: position of the first new token in the row's own part of the cache.
        trunk: slot of the row from which this row branches; None without a trunk.
        shared: number of trunk positions that form the row's prefix; 0 without a trunk.
    """

    slot: int
    offset: int
    length: int
    start: int
    trunk: int | None = None
    shared: int = 0

    def ended(self, offset: int) -> "Row":
        """Return this row with only its last new token; `offset` is the new index of this token."""
        return self._replace(offset=offset, length=1, start=self.start + self.length - 1)


class Attends(Protocol):
    """Computes the attention of one forward pass; a new instance is created for each pass."""

    def attend(self, q: Tensor, kv: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Store the new keys and values in a layer's cache, and compute attention.

        Args:
            q: unrotated queries, either of all new tokens or of each row's last token, float32
                [queries, heads, head dim].
            kv: keys (unrotated) and values of all new tokens, float32 [tokens, 2, KV heads, head
                dim].
            keys, values: the layer's cache, float32 [slots, KV heads, max length, head dim].

        Returns:
            The attention of each query, float32 [queries, heads, head dim].
        """


class GroupedAttention:
    """Implements `Attends` by padding rows of similar shape and computing their attention together.

    Args:
        rows: rows of the same trunk must be adjacent.
        positions: position of each new token in its conversation, int64 [tokens].
        rope: cosines and sines of each position, [max length, head dim] each.
    """

    def __init__(self, rows: Sequence[Row], positions: Tensor, rope: tuple[Tensor, Tensor]):
        self._rows = rows
        self._device = device = rope[0].device
        positions = positions.to(device)
        self._cos, self._sin = rope[0][positions, None], rope[1][positions, None]
        self._attention = Attention(rows, device)
        self._places: Tensor | None = None

    def attend(self, q: Tensor, kv: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        attention, cos, sin = self._attention, self._cos, self._sin
        if self._places is None:
            self._places = _places(self._rows, keys).to(self._device)
        new_keys, new_values = kv.unbind(1)
        for cache, new in ((keys, _rotate(new_keys, cos, sin)), (values, new_values)):
            rows = cache.view(-1, cache.shape[-1])
            rows.index_copy_(0, self._places, new.reshape(-1, cache.shape[-1]))
        if len(q) < len(kv):
            ends = torch.tensor([row.offset + row.length - 1 for row in self._rows])
            cos, sin = cos[ends.to(self._device)], sin[ends.to(self._device)]
            ended = [row.ended(index) for index, row in enumerate(self._rows)]
            attention = Attention(ended, self._device)
        # Scale the queries instead of the scores, because there are fewer queries.
        q = _rotate(q, cos, sin).mul_(q.shape[-1] ** -0.5)
        return attention.attend(q, keys, values)


def _places(rows: Sequence[Row], cache: Tensor) -> Tensor:
    """Return the index of each (new token, KV head) in a layer's cache viewed as [-1, head dim]."""
    slots = torch.tensor([row.slot for row in rows for _ in range(row.length)])
    positions = torch.tensor([row.start + i for row in rows for i in range(row.length)])
    _, kv_heads, length, _ = cache.shape
    heads = slots[:, None] * kv_heads + torch.arange(kv_heads)
    return (heads * length + positions[:, None]).flatten()


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Apply rotary embeddings to x [tokens, heads, dim]; cos and sin are [tokens, 1, dim]."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class Attention:
    """Computes attention by groups of rows. Rows of the same trunk must be adjacent."""

    def __init__(self, rows: Sequence[Row], device: torch.device):
        alone = [row for row in rows if row.trunk is None]
        branches = [row for row in rows if row.trunk is not None]
        self._alone = _groups(alone, device, _width)
        self._branches = _groups(branches, device, _width_and_span)
        self._trunks = _trunk_groups(branches, device)
        self._packed = None
        if alone and branches:
            packed = [row.offset + i for row in branches for i in range(row.length)]
            self._packed = torch.tensor(packed, device=device)

    def attend(self, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Return the attention of all new tokens, [tokens, heads, head dim].

        `q` (scaled) has the same shape. `keys` and `values` are a layer's whole cache.
        """
        out = torch.empty_like(q)
        for group in self._alone:
            group.attend(q, keys, values, out)
        if not self._branches:
            return out
        mixture, top, total = _parts(self._branches, q, keys, values)
        shared, shared_top, shared_total = _parts(self._trunks, q, keys, values)
        highest = torch.maximum(top, shared_top)
        factor, shared_factor = (top - highest).exp_(), (shared_top - highest).exp_()
        total = total.mul_(factor).addcmul_(shared_total, shared_factor)
        mixed = mixture.mul_(factor).addcmul_(shared, shared_factor).div_(total)
        if self._packed is None:
            return mixed
        return out.index_copy_(0, self._packed, mixed.index_select(0, self._packed))


def _parts(
    groups: Sequence["AttentionGroup"], q: Tensor, keys: Tensor, values: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Call `AttentionGroup.part` for all groups; return the filled `out`, `top` and `total`."""
    out, top, total = torch.zeros_like(q), *q.new_zeros(2, *q.shape[:2], 1)
    for group in groups:
        group.part(q, keys, values, out, top, total)
    return out, top, total


def _width(row: Row) -> int:
    """Return the key for grouping rows: log2 of the number of new tokens, rounded up."""
    width = row.length if row.length == 1 else max(_NARROW, row.length)
    return (width - 1).bit_length()


def _width_and_span(row: Row) -> tuple[int, int]:
    """Return the key for grouping branches: `_width`, and log2 of the suffix length, rounded up."""
    span = max(_SHORT, row.start + row.length)
    return _width(row), (span - 1).bit_length()


def _groups(
    rows: Sequence[Row], device: torch.device, kind: Callable[[Row], object]
) -> list["AttentionGroup"]:
    buckets: dict[object, list[tuple[int, int, int, int]]] = {}
    for row in rows:
        buckets.setdefault(kind(row), []).append(row[:4])
    return [AttentionGroup(bucket, device) for bucket in buckets.values()]


def _trunk_groups(branches: Sequence[Row], device: torch.device) -> list["AttentionGroup"]:
    trunks: dict[int, list[Row]] = {}
    for row in branches:
        trunks.setdefault(row.trunk, []).append(row)
    buckets: dict[int, tuple[list, list]] = {}
    for slot, rows_of_trunk in trunks.items():
        length = sum(row.length for row in rows_of_trunk)
        rows, seen = buckets.setdefault((length - 1).bit_length(), ([], []))
        rows.append((slot, rows_of_trunk[0].offset, length, 0))
        # Each token of a branch attends to the whole shared prefix.
        seen += [row.shared - 1 for row in rows_of_trunk for _ in range(row.length)]
    return [AttentionGroup(rows, device, torch.tensor(seen)) for rows, seen in buckets.values()]


class AttentionGroup:
    """Rows whose attention is computed together, padded to the same number of new tokens.

    Args:
        rows: slot, offset, length and start of each row, see `Row`.
        device: device of the cache.
        seen: the last position that each new token attends to, in the order of the rows. If None,
            each token attends to positions up to its own.
    """

    def __init__(
        self,
        rows: list[tuple[int, int, int, int]],
        device: torch.device,
        seen: Tensor | None = None,
    ):
        slots, offsets, lengths, starts = zip(*rows, strict=True)
        low, high = min(slots), max(slots) + 1
        # If the group has at least half of the cache rows in [low, high), process all of these
        # rows. This is faster than copying the group's rows out of the cache.
        self.dense = len(slots) * 2 >= high - low
        height = high - low if self.dense else len(slots)
        place = torch.tensor(slots) - low if self.dense else torch.arange(len(slots))
        self.cache_rows = (low, high) if self.dense else torch.tensor(slots, device=device)
        widest = max(lengths)
        lengths_t, starts_t = torch.tensor(lengths), torch.tensor(starts)
        row_of = torch.repeat_interleave(torch.arange(len(slots)), lengths_t)
        within = torch.arange(len(row_of)) - (lengths_t.cumsum(0) - lengths_t)[row_of]
        if seen is None:
            seen = starts_t[row_of] + within
        self.span = int(seen.max()) + 1
        padded = place[row_of] * widest + within
        visible = torch.zeros(height * widest, dtype=torch.long)
        visible[padded] = seen
        self.shape = (height, widest)
        self.packed = (torch.tensor(offsets)[row_of] + within).to(device)
        self.padded = padded.to(device)
        positions = torch.arange(self.span, device=device)
        hidden = positions > visible.view(height, widest, 1).to(device)
        bias = torch.zeros(hidden.shape, device=device)
        self.bias = bias.masked_fill_(hidden, float("-inf"))[:, None]

    def attend(self, q: Tensor, keys: Tensor, values: Tensor, out: Tensor) -> None:
        """Compute the attention of the group's queries and write it to `out`.

        `q` (scaled) and `out` are [tokens, heads, head dim]. `keys` and `values` are whole caches.
        """
        weights = self._scores(q, keys).softmax(-1)
        self._unpack(self._mix(weights, values), out)

    def part(
        self, q: Tensor, keys: Tensor, values: Tensor, out: Tensor, top: Tensor, total: Tensor
    ) -> None:
        """Compute the group's part of a softmax that also includes positions of other groups.

        For each query, writes its sum of values weighted by exp(score - largest score) to `out`,
        its largest score to `top`, and its sum of weights to `total`. `top` and `total` are
        [tokens, heads, 1].
        """
        scores = self._scores(q, keys)
        highest = scores.amax(-1, keepdim=True)
        weights = scores.sub_(highest).exp_()
        self._unpack(highest, top)
        self._unpack(weights.sum(-1, keepdim=True), total)
        self._unpack(self._mix(weights, values), out)

    def _part(self, cache: Tensor) -> Tensor:
        """Return the group's part of a layer's keys or values, [rows, KV heads, span, head dim]."""
        seen = cache[:, :, : self.span]
        if self.dense:
            return seen[self.cache_rows[0] : self.cache_rows[1]]
        return seen.index_select(0, self.cache_rows)

    def _scores(self, q: Tensor, keys: Tensor) -> Tensor:
        """Return masked scores, [rows, KV heads, query heads per KV head, width, span]."""
        heads, dim = q.shape[1:]
        kv_heads = keys.shape[1]
        rows, width = self.shape
        padded = q.new_zeros(rows * width, heads * dim)
        padded.index_copy_(0, self.padded, q.view(-1, heads * dim).index_select(0, self.packed))
        share = heads // kv_heads
        # Query heads that share a KV head are stacked as additional query positions.
        padded = padded.view(rows, width, kv_heads, share, dim).permute(0, 2, 3, 1, 4)
        scores = padded.reshape(rows, kv_heads, share * width, dim) @ self._part(keys).mT
        return scores.view(rows, kv_heads, share, width, -1).add_(self.bias[:, :, None])

    def _mix(self, weights: Tensor, values: Tensor) -> Tensor:
        """Return weighted sums of values, [rows, KV heads, query heads per KV head, width, dim]."""
        rows, kv_heads, share, width, _ = weights.shape
        mixed = weights.view(rows, kv_heads, share * width, -1) @ self._part(values)
        return mixed.view(rows, kv_heads, share, width, -1)

    def _unpack(self, grouped: Tensor, out: Tensor) -> None:
        """Copy `grouped`, which has the axes of a result of `_mix`, to `out` [tokens, heads, n]."""
        flat = grouped.permute(0, 3, 1, 2, 4).reshape(grouped.shape[0] * grouped.shape[3], -1)
        out.view(len(out), -1).index_copy_(0, self.packed, flat.index_select(0, self.padded))
