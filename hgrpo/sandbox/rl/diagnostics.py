"""Analyses a rule's gradient: its distribution over tokens, direction, and effect on entropy.

All gradients are gradients of losses. If the cosine of the rule's gradient and the gradient of
another loss is positive, a small step of the rule also reduces the other loss.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hgrpo.formulas.batch import Questions, Rollout, Seen, seed_mean
from hgrpo.formulas.full_kl import entropy
from hgrpo.formulas.group import centred
from hgrpo.formulas.importance import ratios
from hgrpo.formulas.rule import Rule
from hgrpo.sandbox.policies import taken
from hgrpo.sandbox.rl.acquire import VIEW, without_noise
from hgrpo.sandbox.rl.tasks.task import can_list, every_output

if TYPE_CHECKING:
    from hgrpo.sandbox.rl.train import Trainer

# Clip range that is used in the log of rules without a clip.
_LOW, _HIGH = 0.2, 0.28
_BUCKETS = ("low", "mid", "high")


def gradient_columns(trainer: "Trainer", batch: Rollout) -> dict[str, Tensor]:
    """Columns [S] about the rule's gradient on a batch.

    - cos_method_ce: cosine with the gradient of the cross-entropy to the labels, on these inputs.
    - cos_method_clean: cosine with the same rule's gradient for noise-free rewards. These rewards
      also determine which rollouts are included.
    - cos_method_exact: cosine with the gradient of -E[R] on the same inputs, if all outputs can be
      enumerated. R is noise-free and includes the task's penalties.
    - true_signal, false_signal: see `_signals`.
    - mass_*: how the norm of the gradient with respect to logits is distributed over terciles of
      surprisal, signs of the advantage (see `token_advantages`), and positions.
    """
    weights = trainer.weights.clone().requires_grad_()
    seen = trainer.see(batch, weights)
    loss = trainer.rule.term(seen).loss.sum()
    inputs = (weights, seen.table)
    gradient, on_table = torch.autograd.grad(loss, inputs, allow_unused=True, retain_graph=True)
    columns = {"cos_method_ce": _cosine(gradient, oracle_gradient(trainer, batch))}
    if trainer.settings.reward_noise:
        clean = without_noise(trainer.settings, trainer.task, batch)
        clean = _gradient(trainer, trainer.screened(clean)[0])
        columns["cos_method_clean"] = _cosine(gradient, clean)
    if can_list(trainer.task):
        exact = exact_gradient(trainer, batch)
        columns["cos_method_exact"] = _cosine(gradient, exact)
        if on_table is not None:
            columns |= _signals(gradient, _of_struck(seen, weights, on_table), exact)
    if on_table is not None:
        columns |= _mass(trainer, seen, on_table)
    return columns


def _of_struck(seen: Seen, weights: Tensor, on_table: Tensor) -> Tensor:
    """The part of the rule's gradient [S, P] from rollouts whose rewards were changed by noise.

    Args:
        on_table: the rule's gradient with respect to log-probs.
    """
    struck = seen.over_tokens((seen.rollout.rewards != seen.rollout.clean).float())
    return torch.autograd.grad(seen.table, weights, on_table * struck.unsqueeze(-1))[0]


def _signals(gradient: Tensor, struck: Tensor, exact: Tensor) -> dict[str, Tensor]:
    """Columns [S]: true and false signal of an update, in the units of a gradient.

    true_signal is the gradient from rollouts without reward noise, projected onto the direction of
    the exact gradient. false_signal is the norm of the gradient from rollouts with reward noise.
    """
    along = torch.nn.functional.normalize(exact, dim=1)
    return {
        "true_signal": ((gradient - struck) * along).sum(1),
        "false_signal": struck.norm(dim=1),
    }


def ratio_columns(rule: Rule, seen: Seen) -> dict[str, Tensor]:
    """Columns [S]: shares of ratios below and above the rule's clip range, and the largest ratio.

    Args:
        rule: the rule. If it has no clip, the range from 0.8 to 1.28 is used.
        seen: the batch, evaluated with the weights at the time of the update.
    """
    band = rule.model_dump()
    clip = band.get("clip")
    low, high = (band.get("low", clip), band.get("high", clip))
    low, high = (_LOW if low is None else low), (_HIGH if high is None else high)
    ratio = ratios(seen.logprobs, seen.rollout.behaviour)
    return {
        "ratio_below_band": seen.mean((ratio < 1.0 - low).float()),
        "ratio_above_band": seen.mean((ratio > 1.0 + high).float()),
        "ratio_largest": (ratio * seen.rollout.taken).flatten(1).amax(1),
    }


def token_advantages(trainer: "Trainer", seen: Seen) -> Tensor:
    """The advantage of each token, detached, [S, N, K, M, T].

    If the rule assigns credit to tokens, the advantage is this credit. Otherwise, it is the reward
    minus the group's mean (grouped rules) or minus the baseline (other rules).
    """
    credit = trainer.rule.token_credit(seen)
    if credit is not None:
        return credit.detach()
    if trainer.rule.grouped:
        return seen.over_tokens(centred(seen.rollout.rewards, -1))
    return seen.advantages.detach()


def entropy_columns(before: Seen, after: Tensor, advantages: Tensor) -> dict[str, Tensor]:
    """Columns [S]: how updates on a batch change the entropy at its prefixes, in nats.

    cov_prob_delta_logit is the covariance, over sampled tokens, between a token's probability
    before the updates and the change in its log-prob. entropy_drop_* is the mean decrease in
    entropy over tokens with positive or negative advantages, or in a tercile of surprisal or
    delight. It is NaN if there are no such tokens.

    Args:
        before: the batch, evaluated before the first update.
        after: log-probs [S, N, K, M, T, V] of all actions after the last update.
        advantages: the tokens' advantages before the first update, [S, N, K, M, T].
    """
    table, weight = before.table.detach(), before.rollout.taken
    was, now = entropy(table), entropy(after)
    probability = before.logprobs.detach().exp()
    change = taken(after, before.rollout.actions) - before.logprobs.detach()
    surprisal = -before.logprobs.detach()

    def drop(inside: Tensor) -> Tensor:
        counted = weight * inside
        none = counted.flatten(1).sum(1) == 0
        return seed_mean(was - now, counted).masked_fill(none, torch.nan)

    columns = {
        "batch_entropy_before": seed_mean(was, weight),
        "batch_entropy_after": seed_mean(now, weight),
        "batch_delta_entropy": seed_mean(now - was, weight),
        "cov_prob_delta_logit": _covariance(probability, change, weight),
        "entropy_drop_pos_adv": drop(advantages > 0),
        "entropy_drop_neg_adv": drop(advantages < 0),
    }
    for name, values in (("surprisal", surprisal), ("delight", advantages * surprisal)):
        for bucket, inside in zip(_BUCKETS, terciles(values, weight), strict=True):
            columns[f"entropy_drop_{name}_{bucket}"] = drop(inside)
    return columns


def terciles(values: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Masks of the low, middle and high third of each seed's values [S, ...].

    Values with weight 0 are excluded.
    """
    flat = values.flatten(1).masked_fill(weight.flatten(1) <= 0, torch.nan)
    shape = (-1, *(1,) * (values.dim() - 1))
    first, second = (torch.nanquantile(flat, q, 1).view(shape) for q in (1 / 3, 2 / 3))
    return values <= first, (values > first) & (values <= second), values > second


def _mass(trainer: "Trainer", seen: Seen, on_table: Tensor) -> dict[str, Tensor]:
    """The columns mass_*; `on_table` is the gradient with respect to all log-probs."""
    through = on_table - seen.table.detach().exp() * on_table.sum(-1, keepdim=True)
    size = through.norm(dim=-1)
    advantages = token_advantages(trainer, seen)
    whole = size.flatten(1).sum(1).clamp(min=torch.finfo(size.dtype).tiny)

    def share(inside: Tensor) -> Tensor:
        return (size * inside).flatten(1).sum(1) / whole

    surprisal = -seen.logprobs.detach()
    thirds = zip(_BUCKETS, terciles(surprisal, seen.rollout.taken), strict=True)
    columns = {f"mass_surprisal_{bucket}": share(inside) for bucket, inside in thirds}
    columns["mass_pos_adv"] = share(advantages > 0)
    columns["mass_neg_adv"] = share(advantages < 0)
    columns["mass_unscored"] = share(seen.scored == 0)
    for place in range(size.shape[-1]):
        columns[f"mass_position_{place}"] = size[..., place].flatten(1).sum(1) / whole
    return columns


def _gradient(trainer: "Trainer", batch: Rollout) -> Tensor:
    weights = trainer.weights.clone().requires_grad_()
    loss = trainer.rule.term(trainer.see(batch, weights)).loss
    return torch.autograd.grad(loss.sum(), weights)[0]


def oracle_gradient(trainer: "Trainer", batch: Rollout) -> Tensor:
    """Gradient of the mean cross-entropy to the labels, with teacher forcing."""
    weights = trainer.weights.clone().requires_grad_()
    answer = batch.labels[:, :, None, None]
    table = trainer.policy.table(weights, batch.inputs[VIEW], answer)
    return torch.autograd.grad(-taken(table, answer).mean((1, 2, 3, 4)).sum(), weights)[0]


def exact_gradient(trainer: "Trainer", batch: Rollout) -> Tensor:
    """Gradient of -E[R] on the batch's inputs, computed as a sum over all outputs.

    The task's penalty depends on log p but is treated as a constant. This does not change the
    result, because the expected gradient of log p is 0.
    """
    weights = trainer.weights.clone().requires_grad_()
    total = torch.zeros_like(weights)
    # Inputs are processed one at a time, because the autograd graph of all would take gigabytes.
    parts = zip(batch.inputs[VIEW].split(1, 1), batch.labels.split(1, 1), strict=True)
    for part in parts:
        chances, rewards = every_output(trainer.task, trainer.policy, weights, Questions(*part))
        total -= torch.autograd.grad((chances * rewards).sum(), weights)[0]
    return total / batch.labels.shape[1]


def _cosine(one: Tensor, other: Tensor) -> Tensor:
    return torch.cosine_similarity(one, other, dim=1)


def _covariance(one: Tensor, other: Tensor, weight: Tensor) -> Tensor:
    shape = (-1, *(1,) * (one.dim() - 1))
    apart = (each - seed_mean(each, weight).view(shape) for each in (one, other))
    return seed_mean(torch.stack(list(apart)).prod(0), weight)
