"""Muon is torch's to the bit in bfloat16, and orthogonal in any type."""

import pytest
import torch
from torch import nn

from hgrpo.learning.optimisers import Muon, orthogonal

SHAPES = [(24, 8), (8, 24), (16, 16)]


def matrices(seed: int) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(seed)
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in SHAPES]


def steps(optimiser, parameters: list[nn.Parameter]) -> None:
    generator = torch.Generator().manual_seed(7)
    for _ in range(4):
        for parameter in parameters:
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        optimiser.step()


def moved(dtype: torch.dtype) -> list[nn.Parameter]:
    ours = matrices(1)
    steps(Muon(ours, 0.01, 0.1, dtype), ours)
    return ours


def test_in_bfloat16_it_is_torchs_to_the_bit():
    theirs = matrices(1)
    steps(torch.optim.Muon(theirs, lr=0.01, weight_decay=0.1), theirs)
    for mine, other, start in zip(moved(torch.bfloat16), theirs, matrices(1), strict=True):
        assert torch.equal(mine, other)
        assert not torch.equal(mine, start)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", SHAPES)
def test_singular_values_come_near_one(shape, dtype):
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    made = orthogonal(matrix, dtype)
    assert made.dtype == dtype
    assert made.shape == matrix.shape
    values = torch.linalg.svdvals(made.float())
    # All but the smallest of a square matrix, which may be near nothing.
    assert (values[:-1] > 0.5).all()
    assert (values < 1.4).all()
    # Its singular vectors are the matrix's own.
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    inner = left.T @ made.float() @ right.T
    assert torch.allclose(inner, torch.diag(inner.diag()), atol=0.05)
