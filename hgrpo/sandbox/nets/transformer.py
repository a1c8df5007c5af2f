"""A causal transformer for stacked seeds: scoring in one pass, and sampling with a cache.

Token embeddings times sqrt(width) plus learned positions; blocks that normalise first, with ReLU
feed-forward layers four times as wide; a last layer norm; a head without bias that shares nothing
with the embeddings. All starts are PyTorch's defaults. There is no dropout.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from hgrpo.sandbox.nets.layout import Part, draw_weights, linear, linear_parts, unpack


@dataclass
class Cache:
    """Keys and values of the tokens so far: per layer [S * R, heads, length, width / heads].

    `size` is the number of tokens so far. `extend` writes in place.
    """

    keys: list[Tensor]
    values: list[Tensor]
    size: int

    def repeated(self, times: int) -> "Cache":
        """Each row `times` times in succession, for rollouts that share a prompt."""
        return Cache(
            [each.repeat_interleave(times, 0) for each in self.keys],
            [each.repeat_interleave(times, 0) for each in self.values],
            self.size,
        )


@dataclass(frozen=True)
class Transformer:
    """`length` is the longest sequence, `width` must be a multiple of `heads`."""

    vocabulary: int
    length: int
    width: int = 64
    heads: int = 2
    layers: int = 2

    @property
    def parts(self) -> tuple[Part, ...]:
        d = self.width
        blocks = [part for layer in range(self.layers) for part in self._block(str(layer))]
        return (
            Part("tokens", (self.vocabulary, d), "normal"),
            Part("positions", (self.length, d), "normal"),
            *blocks,
            *_norm_parts("last", d),
            Part("head", (d, self.vocabulary), "fan_in", d),
        )

    def _block(self, layer: str) -> list[Part]:
        d = self.width
        return [
            *_norm_parts(f"{layer}.attend", d),
            Part(f"{layer}.in.matrix", (d, 3 * d), "xavier"),
            Part(f"{layer}.in.bias", (3 * d,), "zeros"),
            Part(f"{layer}.out.matrix", (d, d), "fan_in", d),
            Part(f"{layer}.out.bias", (d,), "zeros"),
            *_norm_parts(f"{layer}.feed", d),
            *linear_parts(f"{layer}.wide", d, 4 * d),
            *linear_parts(f"{layer}.narrow", 4 * d, d),
        ]

    def init(self, seeds: Sequence[int], name: str = "policy") -> Tensor:
        """First weights [S, P]."""
        return draw_weights(self.parts, seeds, name)

    def logits(self, weights: Tensor, tokens: Tensor, first: int = 0) -> Tensor:
        """Logits [S, R, L - first, V] after each token from position `first` on, in one pass.

        Args:
            tokens: int64 [S, R, L], R sequences a seed.
        """
        tensors = unpack(self.parts, weights)
        return self._head(tensors, self._through(tensors, tokens, None)[..., first:, :])

    @torch.no_grad()
    def start(self, weights: Tensor, tokens: Tensor) -> tuple[Tensor, Cache]:
        """Logits [S, R, V] after prompts `tokens` [S, R, L], and the cache of the prompts."""
        tensors = unpack(self.parts, weights)
        rows, head = tokens.shape[0] * tokens.shape[1], self.width // self.heads
        room = [torch.zeros(rows, self.heads, self.length, head) for _ in range(2 * self.layers)]
        cache = Cache(room[: self.layers], room[self.layers :], 0)
        hidden = self._through(tensors, tokens, cache)
        return self._head(tensors, hidden[..., -1:, :]).squeeze(-2), cache

    @torch.no_grad()
    def extend(self, weights: Tensor, tokens: Tensor, cache: Cache) -> Tensor:
        """Logits [S, R, V] after one more token for each row, `tokens` [S, R]."""
        tensors = unpack(self.parts, weights)
        hidden = self._through(tensors, tokens.unsqueeze(-1), cache)
        return self._head(tensors, hidden).squeeze(-2)

    def _through(
        self, tensors: Mapping[str, Tensor], tokens: Tensor, cache: Cache | None
    ) -> Tensor:
        """Hidden states [S, R, L, d] after the blocks; new keys and values go into the cache."""
        seeds, rows, length = tokens.shape
        begin = cache.size if cache else 0
        offsets = torch.arange(seeds).mul(self.vocabulary)[:, None, None]
        x = F.embedding(tokens + offsets, tensors["tokens"].flatten(0, 1)) * math.sqrt(self.width)
        x = x + tensors["positions"][:, None, begin : begin + length]
        x = x.flatten(1, 2)
        for layer in range(self.layers):
            normed = _norm(tensors, f"{layer}.attend", x)
            heads = linear(tensors, f"{layer}.in", normed)
            mixed = self._attend(heads, (seeds, rows, length), cache, layer)
            x = x + linear(tensors, f"{layer}.out", mixed)
            wide = torch.relu(linear(tensors, f"{layer}.wide", _norm(tensors, f"{layer}.feed", x)))
            x = x + linear(tensors, f"{layer}.narrow", wide)
        if cache:
            cache.size += length
        return x.unflatten(1, (rows, length))

    def _attend(
        self, packed: Tensor, shape: tuple[int, int, int], cache: Cache | None, layer: int
    ) -> Tensor:
        """Causal attention; `packed` [S, R * L, 3 d] holds queries, keys and values."""
        seeds, rows, length = shape
        split = packed.view(seeds * rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        queries, keys, values = split.unbind(0)
        if cache:
            end = cache.size + length
            cache.keys[layer][:, :, cache.size : end] = keys
            cache.values[layer][:, :, cache.size : end] = values
            keys, values = cache.keys[layer][:, :, :end], cache.values[layer][:, :, :end]
        mixed = F.scaled_dot_product_attention(queries, keys, values, is_causal=length > 1)
        return mixed.transpose(1, 2).reshape(seeds, rows * length, self.width)

    def _head(self, tensors: Mapping[str, Tensor], x: Tensor) -> Tensor:
        """Logits [S, R, L, V] of hidden states [S, R, L, d]."""
        seeds, rows, length, _ = x.shape
        normed = _norm(tensors, "last", x.reshape(seeds, rows * length, -1))
        return torch.bmm(normed, tensors["head"]).unflatten(1, (rows, length))


def _norm_parts(name: str, width: int) -> tuple[Part, Part]:
    return Part(f"{name}.scale", (width,), "ones"), Part(f"{name}.shift", (width,), "zeros")


def _norm(tensors: Mapping[str, Tensor], name: str, x: Tensor) -> Tensor:
    """Layer norm of x [S, R, d] with each seed's scale and shift."""
    scale, shift = tensors[f"{name}.scale"], tensors[f"{name}.shift"]
    return torch.addcmul(shift.unsqueeze(1), F.layer_norm(x, x.shape[-1:]), scale.unsqueeze(1))
