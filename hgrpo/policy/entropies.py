"""Entropies of the policy over the replies of a conversation."""

from collections.abc import Sequence

import numpy as np
import torch

from hgrpo.policy.logprobs import make_batch, sampled_logprobs
from hgrpo.policy.policy import Policy


@torch.no_grad()
def reply_entropies(
    policy: Policy,
    token_ids: Sequence[int],
    spans: Sequence[tuple[int, int]],
    temperature: float = 1.0,
) -> list[np.ndarray]:
    """Entropy (nats) of the policy's distribution at each reply token; a float64 array per reply.

    By the chain rule, the sum over a reply is an unbiased estimate of the reply's entropy given its
    context. Costs one forward pass over the conversation, unbatched, so that results do not depend
    on a batch.

    Args:
        token_ids: the whole conversation.
        spans: token ranges [start, end) of the replies.
        temperature: the temperature at which the replies were sampled.
    """
    if not spans:
        return []
    batch = make_batch([token_ids], [spans], policy.device)
    _, entropies = sampled_logprobs(policy.causal_lm, batch, temperature, entropies=True)
    values = entropies.double().cpu().numpy()
    return np.split(values, np.cumsum([end - start for start, end in spans])[:-1])
