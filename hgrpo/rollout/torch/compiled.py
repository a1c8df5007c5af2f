"""Attention over the KV cache in one numba kernel, which requires no C compiler.

For models with a few million parameters, attention.py spends most of its time on padding, copies of
cache rows and call overhead. The kernel reads each row's keys and values in place, without padding.
The softmax is exact, and a row's result does not depend on other rows. Results differ from those of
attention.py only by rounding, because the order of summation differs.
"""

import contextlib
import math
from collections.abc import Sequence

import numba
import numpy as np
import torch
from torch import Tensor

from hgrpo.rollout.torch.attention import Row

# `fastmath` allows vectorised sums in dot products. It assumes that all numbers are finite.
_FAST = {"nogil": True, "fastmath": True, "error_model": "numpy"}
_LOWEST = np.finfo(np.float32).min
_LOG2_E = np.float32(math.log2(math.e))
# A polynomial approximates 2^f for f in [0, 1]. `_POWER` has its coefficients, lowest first.
_FIT = np.polynomial.Chebyshev.interpolate(np.exp2, 6, [0, 1])
_POWER = tuple(_FIT.convert(kind=np.polynomial.Polynomial).coef.astype(np.float32))


class CompiledAttention:
    """Single-threaded implementation of `Attends`; for arguments, see `GroupedAttention`."""

    def __init__(self, rows: Sequence[Row], positions: Tensor, rope: tuple[Tensor, Tensor]):
        self._rope = rope[0].numpy(), rope[1].numpy()
        self._rows = np.array(
            [(r.slot, r.offset, r.length, r.start, r.trunk or 0, r.shared) for r in rows]
        )

    def attend(self, q: Tensor, kv: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        rows, out = self._rows, torch.empty(q.shape)
        queries = rows[:, 1:3]
        if len(q) < len(kv):
            queries = np.stack([np.arange(len(rows)), np.ones(len(rows), np.int64)], axis=1)
        arrays = (q.contiguous(), kv.contiguous(), keys, values, out)
        _attend(
            *(array.numpy() for array in arrays), rows, np.ascontiguousarray(queries), *self._rope
        )
        return out


@numba.njit(inline="always", **_FAST)
def _rotate(x, cos, sin, scale, out):
    """Rotate x [head dim] by the angles of its position, scale it, and write it to out."""
    half = len(x) // 2
    for d in range(half):
        first, second = x[d], x[d + half]
        out[d] = (first * cos[d] - second * sin[d]) * scale
        out[d + half] = (second * cos[d] + first * sin[d]) * scale


@numba.njit(inline="always", **_FAST)
def _score(query, keys, count, scores):
    top = _LOWEST
    for s in range(count):
        score = np.float32(0)
        for d in range(len(query)):
            score += query[d] * keys[s, d]
        scores[s] = score
        top = max(top, score)
    return top


@numba.njit(inline="always", **_FAST)
def _exponentiate(scores, count, top, exponents):
    """Replace the first `count` scores by exp(score - top); return their sum.

    exp(y) = 2^f * 2^n with y = (n + f) log 2. The bits of 2^n as a float32 are those of the integer
    n + 127, shifted left by 23.
    """
    c0, c1, c2, c3, c4, c5, c6 = _POWER
    for s in range(count):
        x = max((scores[s] - top) * _LOG2_E, np.float32(-126))
        n = math.floor(x)
        f = x - n
        scores[s] = c0 + f * (c1 + f * (c2 + f * (c3 + f * (c4 + f * (c5 + f * c6)))))
        exponents[s] = (np.int32(n) + np.int32(127)) << np.int32(23)
    powers = exponents.view(np.float32)
    total = np.float32(0)
    for s in range(count):
        scores[s] *= powers[s]
        total += scores[s]
    return total


@numba.njit(inline="always", **_FAST)
def _mix(weights, values, count, out):
    """Add the weighted sum of the first `count` values to out.

    Values are processed four at a time, to reduce loads and stores of out.
    """
    whole = count - count % 4
    for s in range(0, whole, 4):
        a, b, c, e = weights[s], weights[s + 1], weights[s + 2], weights[s + 3]
        for d in range(len(out)):
            out[d] += (
                a * values[s, d]
                + b * values[s + 1, d]
                + c * values[s + 2, d]
                + e * values[s + 3, d]
            )
    for s in range(whole, count):
        for d in range(len(out)):
            out[d] += weights[s] * values[s, d]


@numba.njit(**_FAST)
def _attend(q, kv, keys, values, out, rows, queries, cos, sin):
    """Implement `CompiledAttention.attend` for NumPy arrays.

    For each row, `rows` has (slot, offset, length, start, trunk, shared), and `queries` has (index
    of the first query, number of queries). These are the queries of the row's last new tokens.
    """
    heads, dim = q.shape[1:]
    share = heads // kv.shape[2]
    scale, one = np.float32(1 / math.sqrt(dim)), np.float32(1)
    query = np.empty(dim, np.float32)
    scores = np.empty(keys.shape[2], np.float32)
    exponents = np.empty(keys.shape[2], np.int32)
    for r in range(len(rows)):
        slot, offset, length, start, trunk, shared = rows[r]
        first, count = queries[r]
        for h in range(kv.shape[2]):
            for i in range(length):
                token, place = offset + i, start + i
                at = shared + place
                _rotate(kv[token, 0, h], cos[at], sin[at], one, keys[slot, h, place])
                values[slot, h, place] = kv[token, 1, h]
        for head in range(heads):
            h = head // share
            for i in range(count):
                # The query attends to the shared prefix and, in the row's suffix, up to its own
                # position.
                seen = start + length - count + i + 1
                at, mixed = shared + seen - 1, out[first + i, head]
                _rotate(q[first + i, head], cos[at], sin[at], scale, query)
                top = _score(query, keys[slot, h], seen, scores[shared:])
                top = max(top, _score(query, keys[trunk, h], shared, scores))
                total = _exponentiate(scores, shared + seen, top, exponents)
                mixed[:] = np.float32(0)
                _mix(scores, values[trunk, h], shared, mixed)
                _mix(scores[shared:], values[slot, h], seen, mixed)
                for d in range(dim):
                    mixed[d] /= total


# Caching fails if neither the package's folder nor the user's cache folder is writable. In this
# case, every process compiles the kernel again.
with contextlib.suppress(RuntimeError):
    _attend.enable_caching()
