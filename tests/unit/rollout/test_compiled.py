"""The compiled kernel: its attention against torch's, row by row, and its exponential."""

import subprocess
import sys

import numpy as np
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from hgrpo.rollout.torch.attention import Row
from hgrpo.rollout.torch.compiled import CompiledAttention, _exponentiate

LENGTH = 24


@st.composite
def passes(draw):
    """Rows, some of which branch from one of two trunks, and whether only their ends are asked."""
    rows: list[Row] = []
    for slot in range(draw(st.integers(1, 5))):
        length, start = draw(st.integers(1, 6)), draw(st.integers(0, 6))
        trunk = draw(st.sampled_from([None, 5, 6]))
        shared = 0 if trunk is None else draw(st.integers(1, 12))
        offset = sum(row.length for row in rows)
        rows.append(Row(slot, offset, length, start, trunk, shared))
    return rows, draw(st.booleans())


def tensors(rows, ends, kv_heads, share, dim):
    """q, kv, keys and values, as `Attends.attend` takes them."""
    torch.manual_seed(0)
    tokens, heads = sum(row.length for row in rows), kv_heads * share
    q = 3 * torch.randn(len(rows) if ends else tokens, heads, dim)
    return q, torch.randn(tokens, 2, kv_heads, dim), *torch.randn(2, 7, kv_heads, LENGTH, dim)


def rope(dim: int) -> tuple[Tensor, Tensor]:
    angles = torch.arange(LENGTH)[:, None] * torch.logspace(0, -3, dim // 2)
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos(), angles.sin()


def rotated(x: Tensor, positions: Tensor) -> Tensor:
    """x [tokens, heads, dim], whose halves are the parts of complex numbers, turned."""
    angles = positions[:, None] * torch.logspace(0, -3, x.shape[-1] // 2)
    turned = torch.complex(*x.chunk(2, dim=-1)) * torch.polar(torch.ones(1), angles)[:, None]
    return torch.cat([turned.real, turned.imag], dim=-1)


def expected(rows, q, kv, keys, values) -> Tensor:
    """The attention, with the new keys and values written to the caches."""
    parts = []
    for index, row in enumerate(rows):
        new = slice(row.offset, row.offset + row.length)
        ours = slice(row.start, row.start + row.length)
        positions = row.shared + torch.arange(row.start, ours.stop)
        keys[row.slot, :, ours] = rotated(kv[new, 0], positions).transpose(0, 1)
        values[row.slot, :, ours] = kv[new, 1].transpose(0, 1)
        seen = [
            torch.cat([cache[row.trunk or 0, :, : row.shared], cache[row.slot, :, : ours.stop]], 1)
            for cache in (keys, values)
        ]
        ends = len(q) < len(kv)
        chosen, positions = (q[[index]], positions[-1:]) if ends else (q[new], positions)
        visible = torch.arange(row.shared + ours.stop) <= positions[:, None]
        queries = rotated(chosen, positions).transpose(0, 1)
        mixed = F.scaled_dot_product_attention(queries, *seen, visible, enable_gqa=True)
        parts.append(mixed.transpose(0, 1))
    return torch.cat(parts)


def attend(rows, q, kv, keys, values) -> Tensor:
    positions = torch.tensor(
        [row.shared + row.start + i for row in rows for i in range(row.length)]
    )
    return CompiledAttention(rows, positions, rope(q.shape[-1])).attend(q, kv, keys, values)


@given(passes(), st.integers(1, 2), st.integers(1, 3), st.integers(1, 20))
@settings(max_examples=50)
def test_it_is_softmax_attention_over_the_trunk_and_the_own_part(case, kv_heads, share, half):
    rows, ends = case
    q, kv, *caches = tensors(rows, ends, kv_heads, share, 2 * half)
    copies = [cache.clone() for cache in caches]
    torch.testing.assert_close(
        attend(rows, q, kv, *caches), expected(rows, q, kv, *copies), rtol=1e-5, atol=3e-6
    )
    torch.testing.assert_close(caches, copies, rtol=1e-5, atol=1e-6)


@given(passes())
@settings(max_examples=20)
def test_a_row_comes_out_the_same_whatever_shares_its_pass(case):
    rows, ends = case
    q, kv, *caches = tensors(rows, ends, 2, 2, 16)
    together = attend(rows, q, kv, *(cache.clone() for cache in caches))
    for index, row in enumerate(rows):
        new = slice(row.offset, row.offset + row.length)
        part = slice(index, index + 1) if len(q) < len(kv) else new
        alone = attend([row._replace(offset=0)], q[part], kv[new], *caches)
        assert torch.equal(alone, together[part])


def test_the_exponential_is_exact_up_to_rounding():
    x = np.linspace(-87, 0, 100_001, dtype=np.float32)
    powers = x + np.float32(2)
    total = _exponentiate(powers, len(x), np.float32(2), np.empty(len(x), np.int32))
    exact = np.exp(x.astype(np.float64))
    # Rounding x / log 2 to float32 costs up to 1.2e-7 |x|, and the rest costs little.
    assert (np.abs(powers / exact - 1) <= 1.2e-7 * (2 - x)).all()
    assert np.abs(powers - exact).max() < 3e-7
    assert abs(total / exact.sum() - 1) < 1e-5
    lowest = np.array([-1e4, -1e30], np.float32)
    _exponentiate(lowest, 2, np.float32(0), np.empty(2, np.int32))
    assert (lowest >= 0).all() and (lowest < 1e-37).all()


def test_without_a_place_for_machine_code_the_kernel_is_compiled_all_the_same():
    program = """
from numba.core import caching
caching.CacheImpl._locator_classes = []  # as if no folder could be written
from hgrpo.rollout.torch import compiled
assert compiled._attend._cache.cache_path is None
assert compiled._attend.nopython_signatures == []
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
