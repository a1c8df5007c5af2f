"""The optimisers of SFT, the learning-rate schedule, and gradient clipping."""

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from hgrpo.errors import TrainingError
from hgrpo.learning.sft_settings import SftConfig
from hgrpo.policy.policy import Policy
from hgrpo.policy.precision import autocast_dtype

# Constants from the reference implementation of Muon.
_MOMENTUM = 0.95
# Coefficients of the quintic iteration; five iterations map singular values in [0.002, 1] to about
# 0.7 to 1.2.
_QUINTIC = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 5
_SMALLEST_NORM = 1e-7


def sft_optimisers(policy: Policy, settings: SftConfig) -> list[Optimizer]:
    """Muon for hidden matrices under full tuning, and AdamW for everything else.

    For AdamW, see Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization",
    https://arxiv.org/abs/1711.05101. AdamW is used for embeddings and the head, as the authors of
    Muon recommend (https://kellerjordan.github.io/posts/muon/). Muon orthogonalises in the dtype of
    the forward pass.
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
    """Learning-rate factor at `step` (from 0) of `total`: linear warm-up, then linear decay to 0.

    With a warm-up, the first factor is 1 / warmup. The factor of the last step is positive.
    """
    if step < warmup:
        return (step + 1) / warmup
    return max(0.0, (total - step) / max(1, total - warmup))


def set_lr(optimisers: Sequence[Optimizer], factor: float) -> None:
    """Set the learning rate of every parameter group to `factor` times its initial value."""
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group.setdefault("base_lr", group["lr"])
            group["lr"] = group["base_lr"] * factor


def descend(
    optimisers: Sequence[Optimizer],
    parameters: Sequence[torch.Tensor],
    max_norm: float,
    prefix: str = "",
) -> float:
    """Clip the gradient norm to `max_norm` and step all optimisers; return the unclipped norm.

    Error messages start with `prefix`.

    Raises:
        TrainingError: the norm, or a weight after the step, is not finite.
    """
    norm = float(nn.utils.clip_grad_norm_(parameters, max_norm))
    if not math.isfinite(norm):
        raise TrainingError(f"{prefix}the gradient is not finite; lower the learning rate")
    for optimiser in optimisers:
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
    if not all(bool(parameter.isfinite().all()) for parameter in parameters):
        raise TrainingError(f"{prefix}weights are not finite after an optimiser step")
    return norm


def orthogonal(matrix: Tensor, dtype: torch.dtype) -> Tensor:
    """Move the singular values of `matrix` close to 1 by Newton-Schulz iteration.

    `dtype` is the dtype of the computation and of the result.
    """
    wide = matrix.to(dtype)
    tall = matrix.size(0) > matrix.size(1)
    if tall:
        wide = wide.T
    # Divide by the Frobenius norm, which is at least as large as all singular values.
    wide = wide / wide.norm().clamp(min=_SMALLEST_NORM)
    linear, cubic, quintic = _QUINTIC
    for _ in range(_ITERATIONS):
        gram = wide @ wide.T
        factor = torch.addmm(gram, gram, gram, beta=cubic, alpha=quintic)
        wide = torch.addmm(wide, factor, wide, beta=linear)
    return wide.T if tall else wide


class Muon(Optimizer):
    """Muon, an optimiser that steps along the orthogonalised momentum of each matrix.

    Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks",
    https://kellerjordan.github.io/posts/muon/. `dtype` is the dtype of the orthogonalisation. With
    bfloat16, results are bitwise equal to those of torch.optim.Muon with default options. On
    processors without bfloat16 instructions, float32 is faster. On such a processor, bfloat16
    orthogonalisation would take 90 % of the time for fine-tuning a tiny model.

    A step moves a matrix by lr * sqrt(max(1, rows / columns)) times the orthogonalised Nesterov
    momentum. Weight decay is decoupled: a step multiplies weights by 1 - lr * weight_decay.
    """

    def __init__(
        self, matrices: Iterable[nn.Parameter], lr: float, weight_decay: float, dtype: torch.dtype
    ):
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay})
        self.dtype = dtype

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            lr, decay = group["lr"], group["weight_decay"]
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                state = self.state[matrix]
                if not state:
                    state["momentum_buffer"] = torch.zeros_like(matrix.grad)
                momentum = state["momentum_buffer"].lerp_(matrix.grad, 1 - _MOMENTUM)
                update = orthogonal(matrix.grad.lerp(momentum, _MOMENTUM), self.dtype)
                matrix.mul_(1 - lr * decay)
                rows, columns = matrix.shape
                matrix.add_(update, alpha=-lr * math.sqrt(max(1, rows / columns)))
