"""Optimisers and the learning-rate schedules they follow."""

import math
from collections.abc import Sequence

import torch
from torch import nn
from torch.optim import AdamW, Optimizer

from hgrpo.errors import TrainingError
from hgrpo.learning.muon import Muon


def sft_optimisers(
    trainable: Sequence[tuple[str, nn.Parameter]],
    matrix_lr: float | None,
    lr: float,
    weight_decay: float,
    autocast: torch.dtype | None,
) -> list[Optimizer]:
    """Muon for hidden matrices (if `matrix_lr` is given) and AdamW for all else.

    Embeddings are matrices too, but their rows are looked up, not multiplied: they stay with AdamW
    (Jordan et al. 2024). `autocast` is the type of training passes, None for float32: Muon's own
    products are in it too.
    """
    hidden, rest = [], []
    for name, parameter in trainable:
        is_hidden = matrix_lr is not None and parameter.dim() == 2 and "embed" not in name
        (hidden if is_hidden and "lm_head" not in name else rest).append(parameter)
    optimisers: list[Optimizer] = [AdamW(rest, lr=lr, weight_decay=weight_decay)]
    if hidden:
        optimisers.append(Muon(hidden, matrix_lr, weight_decay, autocast or torch.float32))
    return optimisers


def warmup_linear(step: int, total: int, warmup: int) -> float:
    """Factor of the learning rate at `step` of `total`: linear up over `warmup`, then down to 0."""
    if step < warmup:
        return (step + 1) / warmup
    return max(0.0, (total - step) / max(1, total - warmup))


def set_lr(optimisers: Sequence[Optimizer], factor: float) -> None:
    """Set every group's learning rate to `factor` times the one it was made with."""
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group.setdefault("base_lr", group["lr"])
            group["lr"] = group["base_lr"] * factor


def clip_gradients(parameters: Sequence[torch.Tensor], max_norm: float) -> float:
    """Scale gradients to a total norm of at most `max_norm`; the norm before scaling.

    Raises:
        TrainingError: the norm is not finite.
    """
    norm = float(nn.utils.clip_grad_norm_(parameters, max_norm))
    if not math.isfinite(norm):
        raise TrainingError("the gradient is not finite; lower the learning rate")
    return norm
