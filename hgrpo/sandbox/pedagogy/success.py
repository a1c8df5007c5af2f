"""The probability that a policy answers right, with its free tokens listed or drawn."""

import torch
from torch import Tensor

from hgrpo.sandbox.every import every
from hgrpo.sandbox.policies import SequencePolicy, taken


@torch.no_grad()
def success(
    policy: SequencePolicy,
    weights: Tensor,
    prompts: Tensor,
    answers: Tensor,
    draws: Tensor | None = None,
) -> Tensor:
    """P(the last tokens are the answer | prompt), float [S, N].

    Free tokens come first. Without `draws` every sequence of them is followed, and the result is
    exact. Else it is the mean over D drawn ones, each with the exact probability of the answer.

    Args:
        prompts: int64 [S, N, L].
        answers: int64 [S, N, A].
        draws: uniform in [0, 1), float [S, N, D, 1, T].
    """
    scratch = policy.horizon - answers.shape[-1]
    if draws is None:
        free = every(policy.net.vocabulary, scratch)[:, None].expand(*answers.shape[:2], -1, 1, -1)
    else:
        free = policy.sample(weights, prompts, draws).actions[..., :scratch]
    last = answers[:, :, None, None].expand(*free.shape[:-1], -1)
    actions = torch.cat([free, last], -1)
    logprobs = taken(policy.table(weights, prompts, actions), actions).squeeze(-2)
    if draws is None:
        return logprobs.sum(-1).exp().sum(-1)
    return logprobs[..., scratch:].sum(-1).exp().mean(-1)
