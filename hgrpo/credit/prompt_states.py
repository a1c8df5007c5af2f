"""Computes the policy's hidden state before each reply of a trajectory."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hgrpo.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    from hgrpo.policy.policy import Policy


def prompt_states(policy: "Policy", trajectories: Sequence[Trajectory]) -> np.ndarray:
    """Return the last layer's hidden state at the token before each turn's reply, float32 [N, D].

    The state depends only on the conversation before the reply. In contrast, the embeddings that
    engines compute also depend on the reply.
    """
    from hgrpo.policy.hidden import read_hidden

    played = [trajectory for trajectory in trajectories if trajectory.turns]
    before = [[turn.span[0] - 1 for turn in trajectory.turns] for trajectory in played]
    tokens = [trajectory.token_ids for trajectory in played]
    return np.concatenate(
        read_hidden(policy, tokens, lambda index, hidden: hidden[before[index]].numpy())
    )
