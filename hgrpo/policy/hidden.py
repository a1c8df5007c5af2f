"""Last hidden states of the policy for whole token sequences."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from hgrpo.policy.head import decode
from hgrpo.policy.logprobs import make_batch, micro_batches
from hgrpo.policy.policy import Policy

_TOKEN_BUDGET = 4096

Read = TypeVar("Read")


@torch.inference_mode()
def read_hidden(
    policy: Policy, sequences: Sequence[Sequence[int]], read: Callable[[int, Tensor], Read]
) -> list[Read]:
    """Apply `read` to each sequence's hidden states; return the results in the same order.

    Sequences are processed in micro-batches. `read` is called with the index of a sequence and the
    sequence's hidden states, float32 [L, hidden size] on the CPU; L may include padding.
    """
    results: dict[int, Read] = {}
    for part in micro_batches([len(tokens) for tokens in sequences], _TOKEN_BUDGET):
        batch = make_batch([sequences[i] for i in part], [[] for _ in part], policy.device)
        hidden = decode(policy.causal_lm, batch.token_ids)[0].float().cpu()
        for row, index in enumerate(part):
            results[index] = read(index, hidden[row])
    return [results[index] for index in range(len(sequences))]
