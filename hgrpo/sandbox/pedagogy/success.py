"""The probability that a policy answers right, with its free tokens listed or drawn."""

import torch
from torch import Tensor

from hgrpo.sandbox.draws import pick
from hgrpo.sandbox.policies import SequencePolicy, taken


@torch.no_grad()
def success(
    policy: SequencePolicy, weights: Tensor, prompts: Tensor, answers: Tensor, draws: Tensor | None
) -> Tensor:
    """P(the last tokens are the answer | prompt), float [S, N].

    Free tokens come first. Without `draws` every sequence of them is followed, and the result is
    exact. Else it is the mean over D drawn ones, each with the exact probability of the answer.

    Args:
        prompts: int64 [S, N, L].
        answers: int64 [S, N, A].
        draws: uniform in [0, 1), float [S, N, D, T - A].
    """
    count, length = answers.shape[1:]
    net = policy.net
    logits, cache = net.start(weights, prompts)
    if draws is not None:
        logits = logits.repeat_interleave(draws.shape[2], 1)
        cache, flat = cache.repeated(draws.shape[2]), draws.flatten(1, 2)
    chances = torch.zeros(logits.shape[:2])
    for step in range(policy.horizon - length):
        table = logits.log_softmax(-1)
        if draws is None:
            chances = (chances.unsqueeze(-1) + table).flatten(1)
            tokens = torch.arange(net.vocabulary).repeat(table.shape[1]).expand(len(table), -1)
            cache = cache.repeated(net.vocabulary)
        else:
            tokens = pick(table, flat[..., step])
        logits = net.extend(weights, tokens, cache)
    each = chances.shape[1] // count
    for place in range(length):
        tokens = answers[..., place].repeat_interleave(each, 1)
        chances = chances + taken(logits.log_softmax(-1), tokens)
        if place + 1 < length:
            logits = net.extend(weights, tokens, cache)
    added = chances.exp().unflatten(1, (count, each)).sum(-1)
    return added if draws is None else added / each
