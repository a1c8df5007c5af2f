"""Computes the gradient of each component of the loss for each group, without optimiser steps.

All components of a group's loss share the same forward passes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from hgrpo.formulas.clip import ppo_clip
from hgrpo.formulas.kl import kl_penalty
from hgrpo.formulas.reduction import token_weights
from hgrpo.learning.batch import TrainingSequence
from hgrpo.learning.settings import KlForm, Reduction, TrainingConfig
from hgrpo.policy.logprobs import make_batch, micro_batches, sampled_logprobs
from hgrpo.policy.policy import Policy
from hgrpo.policy.precision import cast
from hgrpo.policy.score_sketch import CountSketch

# The components are the policy loss (task), the policy loss with every advantage set to 1 (score),
# the KL to the reference, and the negative entropy. No coefficients are applied.
COMPONENTS = ("task", "score", "kl", "entropy")
# Number of float32 entries (64 MiB) per block of the matrix product.
_CHUNK = 2**24


@dataclass(frozen=True)
class Measuring:
    """Settings of the gradient computation.

    Attributes:
        training: provides temperature, clip, reduction and micro-batch size.
        kl_form: the estimator of the KL.
        autocast: dtype of the forward pass; None for the dtype of the weights.
        project: reduces gradients to sketches if those of all groups do not fit into memory.
    """

    training: TrainingConfig
    kl_form: KlForm
    autocast: torch.dtype | None = None
    project: CountSketch | None = None


class GroupGradients(NamedTuple):
    """Gradients and losses of a group, as sums over its tokens.

    Attributes:
        gradients: float32 [C, P], gradient of each component, on the CPU. P is the number of
            trained parameters, or the size of a sketch.
        losses: float64 [C], loss of each component.
        size: the divisor that turns these sums into means.
    """

    gradients: Tensor
    losses: np.ndarray
    size: int


def group_size(lengths: Sequence[int], reduction: Reduction) -> int:
    """The divisor for means over a group: its number of sampled tokens or of trajectories.

    With the reduction `constant`, the token weights are already divided by the constant.
    """
    if reduction == "token":
        return sum(lengths)
    return sum(length > 0 for length in lengths) if reduction == "sequence" else len(lengths)


def group_gradients(
    policy: Policy, group: Sequence[TrainingSequence], how: Measuring
) -> GroupGradients:
    """Gradients and losses of a group, in the order of `COMPONENTS`.

    The group was sampled from `policy` itself, so all ratios are 1 and the clip has no effect.

    Args:
        group: the group's trajectories, with the reference's log-probs.
    """
    training = how.training
    lengths = [sequence.sampled for sequence in group]
    size = group_size(lengths, training.loss_reduction)
    reduction = training.loss_reduction, training.loss_constant
    weights = (size * token_weights(torch.tensor(lengths), *reduction)).split(lengths)
    parameters = [parameter for _, parameter in policy.trainable]
    project = how.project
    length = project.size if project else sum(parameter.numel() for parameter in parameters)
    total = torch.zeros(len(COMPONENTS), length)
    sums = np.zeros(len(COMPONENTS))
    parts = micro_batches([len(s.token_ids) for s in group], training.microbatch_tokens)
    for part in parts:
        losses = _losses(policy, [group[i] for i in part], how)
        weighted = torch.cat([weights[i] for i in part])
        for row, loss in enumerate(losses):
            summed, last = (weighted * loss).sum(), row == len(losses) - 1
            gradients = torch.autograd.grad(
                summed, parameters, retain_graph=not last, materialize_grads=True
            )
            flat = torch.cat([each.reshape(-1).float() for each in gradients])
            total[row] += (project(flat) if project else flat).cpu()
            sums[row] += float(summed.detach())
    return GroupGradients(total, sums, size)


def _losses(
    policy: Policy, sequences: Sequence[TrainingSequence], how: Measuring
) -> tuple[Tensor, ...]:
    """The loss of each component, float32 [N], one entry per sampled token."""
    training, clip = how.training, (how.training.clip_low, how.training.clip_high)
    batch = make_batch(
        [s.token_ids for s in sequences], [s.spans for s in sequences], policy.device
    )
    with cast(policy.device, how.autocast):
        logprobs, entropy = sampled_logprobs(
            policy.causal_lm, batch, training.temperature, "differentiable"
        )
    logprobs, entropy = logprobs.cpu(), entropy.cpu()
    advantages = torch.cat([s.advantages for s in sequences])
    reference = torch.cat([s.reference for s in sequences])
    played = logprobs.detach()
    return (
        ppo_clip(logprobs, played, advantages, *clip),
        ppo_clip(logprobs, played, torch.ones_like(advantages), *clip),
        kl_penalty(how.kl_form, logprobs, reference, played),
        -entropy,
    )


def group_products(
    groups: Iterable[GroupGradients], number: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inner products of the gradients of all groups.

    Args:
        groups: the gradients of each group, or their sketches.
        number: number of groups.

    Returns:
        Inner products float64 [C, G, C, G], sizes of groups [G], and losses of groups [C, G].
    """
    matrix: Tensor | None = None
    sizes, losses = np.zeros(number), np.zeros((len(COMPONENTS), number))
    for index, (gradients, losses[:, index], sizes[index]) in enumerate(groups):
        if matrix is None:
            matrix = torch.empty(len(gradients), number, gradients.shape[1])
        matrix[:, index] = gradients
    components = len(matrix)
    flat = matrix.reshape(components * number, -1)
    products = torch.zeros(len(flat), len(flat), dtype=torch.float64)
    for part in flat.split(max(1, _CHUNK // len(flat)), dim=1):
        products += (part @ part.T).double()
    shape = components, number, components, number
    return products.reshape(shape).numpy(), sizes, losses
