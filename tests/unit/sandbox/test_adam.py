"""Adam and the clip for stacked seeds, against PyTorch's for single ones."""

import torch
from torch import nn

from hgrpo.sandbox.learner import Adam, clip_rows


def test_each_row_moves_as_under_pytorchs_adam():
    weights = torch.randn(3, 7)
    alone = [nn.Parameter(row.clone()) for row in weights]
    theirs = [torch.optim.Adam([each], lr=0.01) for each in alone]
    ours, active = Adam(weights, 0.01), torch.tensor([True, True, False])
    stopped = weights[2].clone()
    for step in range(5):
        gradients = torch.randn(3, 7) * 10.0 ** (step - 2)
        clipped, norms = clip_rows(gradients, 1.0)
        for row, (each, optimiser) in enumerate(zip(alone, theirs, strict=True)):
            each.grad = gradients[row].clone()
            assert torch.allclose(norms[row], nn.utils.clip_grad_norm_([each], 1.0))
            optimiser.step()
        ours.step(clipped, active)
        assert torch.allclose(weights[0], alone[0], atol=1e-6)
        assert torch.allclose(weights[1], alone[1], atol=1e-6)
    assert weights[2].equal(stopped)
