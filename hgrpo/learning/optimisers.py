"""The optimisers of SFT, the learning-rate schedule, and gradient clipping."""

import math
from collections.abc import Sequence

import torch
from torch import nn
from torch.optim import AdamW, Optimizer

from hgrpo.errors import TrainingError
from hgrpo.learning.muon import Muon
from hgrpo.learning.sft_settings import SftConfig
from hgrpo.policy.policy import Policy
from hgrpo.policy.precision import autocast_dtype


def sft_optimisers(policy: Policy, settings: SftConfig) -> list[Optimizer]:
    """Muon for hidden matrices under full tuning, and AdamW for everything else.

    AdamW is Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization",
    https://arxiv.org/abs/1711.05101. Embeddings and the head stay with AdamW, as the authors of
    Muon advise (https://kellerjordan.github.io/posts/muon/). Muon orthogonalises in the type of
    the training passes.
    """
    hidden, rest = [], []
    for name, parameter in policy.trainable:
        is_hidden = not policy.lora and parameter.dim() == 2 and "embed" not in name
        (hidden if is_hidden and "lm_head" not in name else rest).append(parameter)
    optimisers: list[Optimizer] = [AdamW(rest, settings.lr, weight_decay=settings.weight_decay)]
    if hidden:
        dtype = autocast_dtype(policy.config, policy.device) or torch.float32
        optimisers.append(Muon(hidden, settings.matrix_lr, settings.weight_decay, dtype))
    return optimisers


def warmup_linear(step: int, total: int, warmup: int) -> float:
    """Learning-rate factor at `step` (from 0) of `total`: up over `warmup` steps, then down to 0.

    Both parts are linear. With a warm-up, the first step gets 1 / warmup. The step after the last
    would get 0.
    """
    if step < warmup:
        return (step + 1) / warmup
    return max(0.0, (total - step) / max(1, total - warmup))


def set_lr(optimisers: Sequence[Optimizer], factor: float) -> None:
    """Set the learning rate of every parameter group to `factor` times its initial one."""
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group.setdefault("base_lr", group["lr"])
            group["lr"] = group["base_lr"] * factor


def descend(
    optimisers: Sequence[Optimizer],
    parameters: Sequence[torch.Tensor],
    max_norm: float,
    whose: str = "",
) -> float:
    """Scale gradients to a norm of at most `max_norm`, step all optimisers; return the first norm.

    Messages begin with `whose`.

    Raises:
        TrainingError: the norm, or a weight after the step, is not finite.
    """
    norm = float(nn.utils.clip_grad_norm_(parameters, max_norm))
    if not math.isfinite(norm):
        raise TrainingError(f"{whose}the gradient is not finite; lower the learning rate")
    for optimiser in optimisers:
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
    if not all(bool(parameter.isfinite().all()) for parameter in parameters):
        raise TrainingError(f"{whose}an optimiser step left weights that are not finite")
    return norm
