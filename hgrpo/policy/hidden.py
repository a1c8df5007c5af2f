"""The policy's last hidden states, of whole token sequences and before replies."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from hgrpo.policy.head import decode
from hgrpo.policy.logprobs import make_batch, micro_batches
from hgrpo.policy.policy import Policy
from hgrpo.trajectories.trajectory import Trajectory

_TOKEN_BUDGET = 4096

Read = TypeVar("Read")


@torch.inference_mode()
def read_hidden(
    policy: Policy, sequences: Sequence[Sequence[int]], read: Callable[[int, Tensor], Read]
) -> list[Read]:
    """What `read` makes of each sequence's hidden states, in the order of the sequences.

    The policy reads each sequence once, several at a time. `read` gets the index of a sequence and
    its states, float32 [L, hidden size] on the CPU, where L may exceed the sequence's length.
    """
    results: dict[int, Read] = {}
    for part in micro_batches([len(tokens) for tokens in sequences], _TOKEN_BUDGET):
        batch = make_batch([sequences[i] for i in part], [[] for _ in part], policy.device)
        hidden = decode(policy.causal_lm, batch.token_ids)[0].float().cpu()
        for row, index in enumerate(part):
            results[index] = read(index, hidden[row])
    return [results[index] for index in range(len(sequences))]


def prompt_states(policy: Policy, trajectories: Sequence[Trajectory]) -> np.ndarray:
    """Last hidden state of the policy at the last token before each turn's reply, float32 [N, D].

    It depends on the whole conversation up to the reply, and not on the reply. The embeddings that
    engines pool during play will not do, because they hold the reply.
    """
    played = [trajectory for trajectory in trajectories if trajectory.turns]
    before = [[turn.span[0] - 1 for turn in trajectory.turns] for trajectory in played]
    tokens = [trajectory.token_ids for trajectory in played]
    return np.concatenate(
        read_hidden(policy, tokens, lambda index, hidden: hidden[before[index]].numpy())
    )
