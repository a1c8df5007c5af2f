"""Computes one vector per turn from the policy's own hidden states.

`rollout.engine.Completion` says which states an embedding averages. Some engines compute these
means while they play; `turn_embeddings` computes them in one pass over the whole conversation.
"""

from collections.abc import Sequence

import numpy as np
import torch

from hgrpo.agent.conversation import Conversation
from hgrpo.policy.head import decode
from hgrpo.policy.logprobs import make_batch, micro_batches
from hgrpo.policy.policy import Policy
from hgrpo.trajectories.trajectory import Trajectory

_TOKEN_BUDGET = 4096


def turn_ranges(
    spans: Sequence[tuple[int, int]], token_ids: Sequence[int], end_id: int
) -> list[tuple[int, int]]:
    """For each turn, the range [start, end) of tokens whose hidden states its embedding averages.

    `spans` are the ranges of the replies in `token_ids`, the whole conversation. `end_id` is the
    token that closes a reply.
    """
    ends = [end - (token_ids[end - 1] == end_id) for _, end in spans]
    return list(zip([0, *ends], ends, strict=False))


@torch.inference_mode()
def turn_embeddings(policy: Policy, trajectories: Sequence[Trajectory]) -> list[np.ndarray]:
    """Embeddings of each trajectory's turns, float32 [T_k, D], from one pass over all tokens."""
    end_id = policy.conversation.end_id
    found: list[np.ndarray | None] = [None] * len(trajectories)
    for part in micro_batches([len(t.token_ids) for t in trajectories], _TOKEN_BUDGET):
        tokens = [trajectories[i].token_ids for i in part]
        batch = make_batch(tokens, [[] for _ in part], policy.device)
        hidden = decode(policy.causal_lm, batch.token_ids)[0].float().cpu()
        for row, index in enumerate(part):
            spans = [turn.span for turn in trajectories[index].turns]
            ranges = turn_ranges(spans, trajectories[index].token_ids, end_id)
            means = [hidden[row, start:end].mean(0).numpy() for start, end in ranges]
            found[index] = np.stack(means) if means else np.zeros((0, hidden.shape[-1]), np.float32)
    return found  # type: ignore[return-value]


@torch.inference_mode()
def goal_embedding(policy: Policy, conversation: Conversation, goal: str) -> np.ndarray:
    """Mean hidden state, float32 [D], of a conversation's opening that shows only the goal."""
    tokens = torch.tensor([conversation.opening(goal)], device=policy.device)
    hidden, _ = decode(policy.causal_lm, tokens)
    return hidden[0].float().mean(0).cpu().numpy()
