"""A causal transformer, evaluated for many seeds at once, with a key-value cache for sampling.

The inputs are token embeddings times sqrt(width) plus learned position embeddings. Blocks are
pre-norm, and their feed-forward layers (ReLU) have four times the width. The last block is followed
by a layer norm and an untied head without bias. There is no dropout. Weights are initialised with
PyTorch's defaults. All blocks start with the same weights, as in PyTorch's `TransformerEncoder`
(https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoder.html).

All rollouts of a prompt share the prompt's keys and values, which are computed once. Tensors are
modified in place, because matrix products are small and memory traffic dominates. Keys and values
are padded to a length of at least 16, because PyTorch's batched matrix products and softmax are
several times slower for shorter sequences.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from hgrpo.sandbox.every import Tree
from hgrpo.sandbox.nets.layout import Part, draw_weights, linear, linear_parts, unpack

# Minimum number of keys in attention, including padding.
_FEWEST = 16
# Pairs (layer norm, linear layer that follows it) of a transformer block.
_INTO = (("attend", "in"), ("feed", "wide"))


class Prefix:
    """Keys and values of the previous tokens, per layer [S * N, heads, L, width / heads].

    `join` creates new tensors, so that gradients can be computed.
    """

    def __init__(self, layers: Sequence[tuple[Tensor, Tensor]] = ()):
        self.layers = list(layers)

    @property
    def size(self) -> int:
        """Number of tokens, L."""
        return self.layers[0][0].shape[2] if self.layers else 0

    def join(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return padded keys and values of all previous and new tokens, [S * N * R, ...] each.

        Every R consecutive rows of `keys` and `values` continue the same prefix.
        """
        return tuple(
            _after(old, new) for old, new in zip(self.layers[layer], (keys, values), strict=True)
        )


class Reading(NamedTuple):
    """Processed prompts: the logits after each prompt, [S, N, V], and keys and values."""

    logits: Tensor
    prefix: Prefix


class Cache:
    """Keys and values of `rows` rollouts per prompt, with room for `length` more tokens each.

    `join` writes the new keys and values into the cache, in place.
    """

    def __init__(self, prefix: Prefix, length: int, rows: int = 1):
        self.size = prefix.size
        self.layers = [tuple(self._roomy(each, length, rows) for each in p) for p in prefix.layers]

    def _roomy(self, filled: Tensor, length: int, rows: int) -> Tensor:
        prompts, heads, size, width = filled.shape
        room = filled.new_zeros(prompts, rows, heads, max(_FEWEST, size + length), width)
        room[:, :, :, :size] = filled.unsqueeze(1)
        return room.flatten(0, 1)

    def join(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Like `Prefix.join`; the caller must increase `size` after the last layer."""
        end = self.size + keys.shape[2]
        for room, new in zip(self.layers[layer], (keys, values), strict=True):
            room[:, :, self.size : end] = new
        width = max(_FEWEST, end)
        return tuple(room[:, :, :width] for room in self.layers[layer])


@dataclass(frozen=True)
class Transformer:
    """A transformer. `length` is the maximum sequence length; `heads` must divide `width`."""

    vocabulary: int
    length: int
    width: int = 64
    heads: int = 2
    layers: int = 2

    @property
    def parts(self) -> tuple[Part, ...]:
        d = self.width
        blocks = [part for layer in range(self.layers) for part in self._block_parts(str(layer))]
        return (
            Part("tokens", (self.vocabulary, d), "normal"),
            Part("positions", (self.length, d), "normal"),
            *blocks,
            *_norm_parts("last", d),
            Part("head.matrix", (d, self.vocabulary), "fan_in", d),
        )

    def _block_parts(self, layer: str) -> list[Part]:
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
        weights = draw_weights(self.parts, seeds, name)
        tensors = unpack(self.parts, weights)
        for part in self._block_parts(""):
            for layer in range(1, self.layers):
                tensors[f"{layer}{part.name}"].copy_(tensors[f"0{part.name}"])
        return weights

    def tensors(self, weights: Tensor) -> Mapping[str, Tensor]:
        """The tensors of the net by name, with each layer norm merged into the next linear layer.

        Merging the norm's scale and shift into the layer's matrix and bias requires less memory
        traffic than applying them to hidden states.
        """
        tensors = dict(unpack(self.parts, weights))
        blocks = [
            (f"{i}.{norm}", f"{i}.{into}") for i in range(self.layers) for norm, into in _INTO
        ]
        for norm, layer in (*blocks, ("last", "head")):
            scale, shift = tensors.pop(f"{norm}.scale"), tensors.pop(f"{norm}.shift")
            matrix = tensors[f"{layer}.matrix"]
            shifted = torch.bmm(shift.unsqueeze(1), matrix).squeeze(1)
            tensors[f"{layer}.bias"] = shifted + tensors.get(f"{layer}.bias", 0.0)
            tensors[f"{layer}.matrix"] = scale.unsqueeze(2) * matrix
        return tensors

    def logits(self, weights: Tensor, tokens: Tensor, last: int | None = None) -> Tensor:
        """Logits [S, R, L, V] after each token of R sequences, int64 [S, R, L], in one pass.

        Args:
            last: return logits only for the final `last` tokens; None for all tokens.
        """
        tensors = self.tensors(weights)
        return self._head(tensors, self._through(tensors, tokens, None, last)[0])

    def read(self, weights: Tensor, prompts: Tensor) -> Reading:
        """Process prompts, int64 [S, N, L], in one pass."""
        tensors = self.tensors(weights)
        hidden, prefix = self._through(tensors, prompts, None, 1)
        return Reading(self._head(tensors, hidden).squeeze(-2), prefix)

    def continued(self, weights: Tensor, read: Reading, tails: Tensor) -> Tensor:
        """Logits after each prompt and after each token of its continuations, [S, N, R, T + 1, V].

        Args:
            read: result of `read` for the prompts, computed with `weights`.
            tails: int64 [S, N, R, T], R continuations of each prompt.
        """
        tail_count, length = tails.shape[2:]
        first = read.logits[:, :, None, None].expand(-1, -1, tail_count, -1, -1)
        if not length:
            return first
        tensors = self.tensors(weights)
        hidden, _ = self._through(tensors, tails.flatten(1, 2), read.prefix)
        rest = self._head(tensors, hidden).unflatten(1, tails.shape[1:3])
        return torch.cat([first, rest], 3)

    def branched(self, weights: Tensor, read: Reading, tree: Tree) -> Tensor:
        """Logits after the prompts and after each of the M nodes of a tree, [S, N, M + 1, V].

        Args:
            read: result of `read` for the prompts, computed with `weights`.
        """
        first = read.logits.unsqueeze(2)
        if not len(tree.tokens):
            return first
        tensors = self.tensors(weights)
        hidden, _ = self._through(
            tensors, tree.tokens.expand(*first.shape[:2], -1), read.prefix, tree=tree
        )
        return torch.cat([first, self._head(tensors, hidden)], 2)

    @torch.no_grad()
    def extend(self, tensors: Mapping[str, Tensor], tokens: Tensor, cache: Cache) -> Tensor:
        """Logits [S, R, V] after one more token for each row.

        Args:
            tensors: result of `tensors`.
            tokens: int64 [S, R].
            cache: cache of the previous tokens.
        """
        hidden, _ = self._through(tensors, tokens.unsqueeze(-1), cache)
        cache.size += 1
        return self._head(tensors, hidden).squeeze(-2)

    def _through(
        self,
        tensors: Mapping[str, Tensor],
        tokens: Tensor,
        past: Prefix | Cache | None,
        last: int | None = None,
        tree: Tree | None = None,
    ) -> tuple[Tensor, Prefix]:
        """Hidden states [S, R, L, d] after all blocks and, if `past` is None, all keys and values.

        If `last` is given, the last block computes hidden states only for the final `last` tokens.
        If `tree` is given, the tokens are the nodes of the tree.
        """
        seeds, rows, length = tokens.shape
        begin = past.size if past else 0
        offsets = torch.arange(seeds).mul(self.vocabulary)[:, None, None]
        x = F.embedding(tokens + offsets, tensors["tokens"].flatten(0, 1)) * math.sqrt(self.width)
        places = begin + tree.depths if tree else slice(begin, begin + length)
        x = (x + tensors["positions"][:, None, places]).flatten(1, 2)
        seen = []
        for layer in range(self.layers):
            packed = linear(tensors, f"{layer}.in", _normalised(x))
            packed = packed.view(seeds * rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            queries, keys, values = packed.unbind(0)
            size = begin + length
            if past:
                keys, values = past.join(layer, keys, values)
            else:
                seen.append((keys, values))
                keys, values = _after(None, keys), _after(None, values)
            if last is not None and last < length and layer == self.layers - 1:
                queries = queries[:, :, -last:]
                x = x.unflatten(1, (rows, length))[:, :, -last:].flatten(1, 2)
                length = last
            mixed = _attend(queries, keys, values, size, tree).transpose(1, 2)
            x = x + linear(tensors, f"{layer}.out", mixed.reshape(seeds, rows * length, -1))
            wide = linear(tensors, f"{layer}.wide", _normalised(x)).relu_()
            x = x + linear(tensors, f"{layer}.narrow", wide)
        return x.unflatten(1, (rows, length)), Prefix(seen)

    def _head(self, tensors: Mapping[str, Tensor], x: Tensor) -> Tensor:
        return linear(tensors, "head", _normalised(x.flatten(1, 2))).unflatten(1, x.shape[1:3])


def _after(old: Tensor | None, new: Tensor) -> Tensor:
    """Append keys or values `new` [N * R, heads, T, d] to `old` [N, heads, L, d], and pad.

    R consecutive rows of `new` are appended to copies of the same row of `old`.
    """
    shared = new[:, :, :0] if old is None else old
    rows, size = new.shape[0] // shared.shape[0], shared.shape[2] + new.shape[2]
    new = new.unflatten(0, (-1, rows))
    shared = shared.unsqueeze(1).expand(-1, rows, -1, -1, -1)
    padding = new.new_zeros(1).expand(*new.shape[:3], max(0, _FEWEST - size), new.shape[4])
    return torch.cat([shared, new, padding], 3).flatten(0, 1)


def _attend(queries: Tensor, keys: Tensor, values: Tensor, size: int, tree: Tree | None) -> Tensor:
    """Causal attention of the last T of `size` tokens, [R, heads, T, d].

    With `tree`, these T tokens are the nodes of the tree. Each node attends to the tokens before
    the tree, to its ancestors and to itself.

    Keys and values are [R, heads, L, d]. The positions from `size` to L are padding. PyTorch's
    fused kernel is not used, because it is up to twice as slow for such short sequences.
    """
    scores = torch.matmul(queries / math.sqrt(queries.shape[-1]), keys.transpose(-1, -2))
    new, width = scores.shape[-2:]
    if new > 1 or width > size:
        unseen = torch.full((new, width), -math.inf).triu(size - new + 1)
        if tree:
            unseen[:, size - new : size].masked_fill_(tree.hidden, -math.inf)
        scores += unseen
    return torch.matmul(scores.softmax(-1), values)


def _norm_parts(name: str, width: int) -> tuple[Part, Part]:
    return Part(f"{name}.scale", (width,), "ones"), Part(f"{name}.shift", (width,), "zeros")


def _normalised(x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:])
