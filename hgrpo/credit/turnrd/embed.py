"""Computes one vector per turn from the policy's own hidden states.

`rollout.engine.Completion` says which states an embedding averages. Some engines compute these
means while they play; `turn_embeddings` computes them in one pass over the whole conversation.
"""

from collections.abc import Sequence

import numpy as np
import torch

from hgrpo.agent.conversation import Conversation
from hgrpo.policy.head import decode
from hgrpo.policy.hidden import read_hidden
from hgrpo.policy.policy import Policy
from hgrpo.trajectories.trajectory import Trajectory


def turn_ranges(
    spans: Sequence[tuple[int, int]], token_ids: Sequence[int], end_id: int
) -> list[tuple[int, int]]:
    """For each turn, the range [start, end) of tokens whose hidden states its embedding averages.

    `spans` are the ranges of the replies in `token_ids`, the whole conversation. `end_id` is the
    token that closes a reply.
    """
    ends = [end - (token_ids[end - 1] == end_id) for _, end in spans]
    return list(zip([0, *ends], ends, strict=False))


def turn_embeddings(policy: Policy, trajectories: Sequence[Trajectory]) -> list[np.ndarray]:
    """Embeddings of each trajectory's turns, float32 [T_k, D], from one pass over all tokens."""
    end_id = policy.conversation.end_id

    def means(index: int, hidden: torch.Tensor) -> np.ndarray:
        played = trajectories[index]
        ranges = turn_ranges(played.spans, played.token_ids, end_id)
        rows = [hidden[start:end].mean(0).numpy() for start, end in ranges]
        return np.stack(rows) if rows else np.zeros((0, hidden.shape[-1]), np.float32)

    return read_hidden(policy, [trajectory.token_ids for trajectory in trajectories], means)


@torch.inference_mode()
def goal_embedding(policy: Policy, conversation: Conversation, goal: str) -> np.ndarray:
    """Mean hidden state, float32 [D], of a conversation's opening that shows only the goal."""
    tokens = torch.tensor([conversation.opening(goal)], device=policy.device)
    hidden, _ = decode(policy.causal_lm, tokens)
    return hidden[0].float().mean(0).cpu().numpy()
