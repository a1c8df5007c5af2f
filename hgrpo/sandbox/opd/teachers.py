"""Analytic teachers: for every right answer, the log-probs of the next token, [label, V]."""

import torch
from torch import Tensor

from hgrpo.sandbox.opd.settings import OpdSettings

# A content token's weight grows by this with each id, so that no two are equal.
_STEP = 1e-3


def teacher_table(settings: OpdSettings) -> Tensor:
    """Log-probs [V, V] by the right token; a teacher reads nothing else."""
    if settings.task == "soft_reversal":
        return graded(
            settings.vocab_size,
            settings.actions,
            settings.teacher_temperature,
            settings.special_token_weight,
        )
    return smoothed(settings.actions, settings.teacher_epsilon)


def smoothed(actions: int, epsilon: float) -> Tensor:
    """1 - epsilon on the right token, and epsilon spread evenly over all others."""
    table = torch.full((actions, actions), epsilon / (actions - 1), dtype=torch.float64)
    return table.fill_diagonal_(1.0 - epsilon).log().float()


def graded(content: int, actions: int, temperature: float, special: float) -> Tensor:
    """More for content tokens near the right one, on a circle, and little for the others.

    A content token a at distance d from the label, around the circle, weighs
    exp(-d / temperature) (1 + 0.001 a). A token that is no content weighs `special`.
    """
    ids = torch.arange(content, dtype=torch.float64)
    apart = (ids.unsqueeze(0) - ids.unsqueeze(1)).abs()
    near = torch.exp(-torch.minimum(apart, content - apart) / temperature) * (1.0 + _STEP * ids)
    weights = torch.full((actions, actions), special, dtype=torch.float64)
    weights[:content, :content] = near
    return (weights / weights.sum(-1, keepdim=True)).log().float()
