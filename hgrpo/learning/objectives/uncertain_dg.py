"""Three ways in which the delightful gradient doubts a noisy reward.

`uncertainty` stands for how far rewards scatter: their deviation in the group, or in the batch. The
rules are the original sandbox's own.
"""

import torch
from torch import Tensor

from hgrpo.learning.objectives.dg import delight, dg_weights
from hgrpo.learning.objectives.shapes import check_shapes


def uncertain_gates(
    logprobs: Tensor, advantages: Tensor, uncertainty: Tensor, eta: float, scale: float
) -> Tensor:
    """sigmoid((A s - scale U) / eta).

    The more rewards scatter, the more delight a token needs to pass.
    """
    check_shapes(logprobs, uncertainty)
    return torch.sigmoid((delight(logprobs, advantages) - scale * uncertainty) / eta)


def filtered_dg_weights(
    logprobs: Tensor, advantages: Tensor, uncertainty: Tensor, eta: float, threshold: float
) -> Tensor:
    """The weights of `dg.dg_weights` where U <= threshold, and 0 elsewhere."""
    check_shapes(logprobs, uncertainty)
    return dg_weights(logprobs, advantages, eta) * (uncertainty <= threshold)


def shrunk_advantages(advantages: Tensor, uncertainty: Tensor, scale: float) -> Tensor:
    """A / (1 + scale U)."""
    return advantages / (1.0 + scale * uncertainty)


def variance_dg_weights(
    logprobs: Tensor, advantages: Tensor, uncertainty: Tensor, eta: float, scale: float
) -> Tensor:
    """The weights of `dg.dg_weights` for `shrunk_advantages`."""
    check_shapes(logprobs, uncertainty)
    return dg_weights(logprobs, shrunk_advantages(advantages, uncertainty, scale), eta)
