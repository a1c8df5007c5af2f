"""Computes the terms of TurnRD's loss, and their targets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hgrpo.credit.replay import ReplayRow
from hgrpo.credit.turnrd.model import TurnBatch, masked_softmax, pad, padded
from hgrpo.credit.turnrd.settings import FitSettings


def value_loss(values: Tensor, targets: Tensor, mask: Tensor) -> Tensor:
    """Mean squared error over the turns in the mask; all arguments are [B, T]."""
    return ((values - targets) ** 2 * mask).sum() / mask.sum()


def rank_loss(predicted: Tensor, returns: Tensor, margin: float) -> Tensor:
    """Mean of max(0, margin - (predicted_i - predicted_j)) over pairs with R_i > R_j.

    predicted and returns are [B]. The loss is 0 if all returns are equal.
    """
    better = returns[:, None] > returns[None, :]
    if not better.any():
        return predicted.sum() * 0.0
    hinge = F.relu(margin - (predicted[:, None] - predicted[None, :]))
    return hinge[better].mean()


def prior_loss(alpha: Tensor, mask: Tensor) -> Tensor:
    """Mean of KL(alpha || softmax(t / T)) over trajectories, each with its own length T.

    alpha and mask are [B, T].
    """
    length = mask.sum(-1, keepdim=True)
    prior = masked_softmax(torch.arange(mask.shape[1]) / length, mask)
    return _kl(alpha, prior, mask).mean()


def entropy(alpha: Tensor, mask: Tensor) -> Tensor:
    """Entropy of each row of alpha [B, T] in nats, [B]."""
    return -(alpha * _log(alpha, mask)).sum(-1)


def supervision_loss(alpha: Tensor, targets: Tensor, drawn: Tensor) -> Tensor:
    """Mean of KL(target || rescaled alpha) over the trajectories that have a target.

    Alpha is rescaled to sum to 1 over the turns in `drawn`, so that the loss depends only on the
    relative weights of these turns. The loss is 0 if no trajectory has a target.

    All arguments are [B, T]. `drawn` is True for turns from which continuations were played. A row
    of `targets` is a distribution over these turns, or 0 if the trajectory has no target.
    """
    known = targets.sum(-1) > 0
    if not known.any():
        return alpha.sum() * 0.0
    targets, alpha, drawn = targets[known], alpha[known], drawn[known]
    floor = torch.finfo(alpha.dtype).tiny
    among = alpha.masked_fill(~drawn, 0.0)
    among = among / among.sum(-1, keepdim=True).clamp(min=floor)
    return _kl(targets, among, drawn).mean()


def contrastive_loss(hidden: Tensor, returns: Tensor, mask: Tensor, temperature: float) -> Tensor:
    """InfoNCE loss with the turns of successes (trajectories with a positive return) as positives.

    "Representation Learning with Contrastive Predictive Coding", https://arxiv.org/abs/1807.03748.
    Every turn of a success is an anchor, and all other turns of successes are its positives. The
    denominator is a sum over all turns except the anchor. The mean over an anchor's positives is
    outside the logarithm, as in "Supervised Contrastive Learning",
    https://arxiv.org/abs/2004.11362. The loss is 0 if successes have fewer than two turns in total,
    or if there are no failures.

    The shapes are hidden [B, T, H], returns [B], and mask bool [B, T]. Cosine similarities are
    divided by the temperature.
    """
    turns = F.normalize(hidden[mask], dim=-1)
    good = (returns > 0)[:, None].expand_as(mask)[mask]
    if good.sum() < 2 or good.all():
        return hidden.sum() * 0.0
    similarity = turns @ turns.T / temperature
    itself = torch.eye(len(turns), dtype=torch.bool)
    logp = similarity.masked_fill(itself, float("-inf")).log_softmax(-1)
    positives = good[:, None] & good[None, :] & ~itself
    per_anchor = logp.masked_fill(~positives, 0.0).sum(-1)[good] / (good.sum() - 1)
    return -per_anchor.mean()


def _log(weights: Tensor, mask: Tensor) -> Tensor:
    """Logarithm of weights [B, T]; 0 where the mask is False or the weight is 0."""
    there = mask & (weights > 0)
    return weights.masked_fill(~there, 1.0).log()


def _kl(first: Tensor, second: Tensor, mask: Tensor) -> Tensor:
    floor = torch.finfo(second.dtype).tiny
    log_second = second.clamp(min=floor).masked_fill(~mask, 1.0).log()
    return (first * (_log(first, mask) - log_second)).sum(-1)


@dataclass(frozen=True)
class Targets:
    """Training targets of a batch.

    Attributes:
        returns: float32 [B], targets of the predicted return.
        values: float32 [B, T], targets of V_t.
        supervision: float32 [B, T], targets of alpha, see `supervision_target`.
        drawn: bool [B, T], turns from which continuations were played.
    """

    returns: Tensor
    values: Tensor
    supervision: Tensor
    drawn: Tensor


def value_targets(row: ReplayRow, settings: FitSettings) -> np.ndarray:
    """Return the targets of V_t, [T].

    The target `progress` is the turn's progress, `return_share` is R / T, and `discounted_return`
    is discount^(T-1-t) R.
    """
    length = len(row.progress)
    match settings.value_target:
        case "progress":
            return row.progress
        case "return_share":
            return np.full(length, row.env_return / length)
        case _:
            return settings.discount ** np.arange(length - 1, -1, -1) * row.env_return


def drawn_turns(row: ReplayRow) -> np.ndarray:
    """Return whether continuations were played from each turn, bool [T]."""
    if row.targets is None:
        return np.zeros(len(row.progress), bool)
    return ~np.isnan(row.targets)


def supervision_target(row: ReplayRow) -> np.ndarray:
    """Positive counterfactual credit, normalised to a distribution over `drawn_turns`, [T].

    A target requires at least two of these turns, and positive credit at one of them. Otherwise,
    the result is 0 for all turns.
    """
    drawn = drawn_turns(row)
    if drawn.sum() < 2:
        return np.zeros(len(drawn))
    positive = np.clip(np.nan_to_num(row.targets), 0, None)
    total = positive.sum()
    return positive / total if total > 1e-9 else np.zeros(len(positive))


def make_batch(rows: Sequence[ReplayRow], settings: FitSettings) -> tuple[TurnBatch, Targets]:
    """Return padded inputs and targets. Goals are omitted if any trajectory has no goal."""
    goals = [row.goal for row in rows]
    known = None if any(goal is None for goal in goals) else goals
    batch = pad([row.embeddings for row in rows], known)
    returns = torch.tensor([row.env_return for row in rows], dtype=torch.float32)
    values = padded(value_targets(row, settings).astype(np.float32) for row in rows)
    supervision = padded(supervision_target(row).astype(np.float32) for row in rows)
    return batch, Targets(returns, values, supervision, padded(map(drawn_turns, rows)))
