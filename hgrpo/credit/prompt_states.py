"""The policy's hidden states before the replies of a trajectory."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hgrpo.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    from hgrpo.policy.policy import Policy


def prompt_states(policy: "Policy", trajectories: Sequence[Trajectory]) -> np.ndarray:
    """Last hidden state of the policy at the last token before each turn's reply, float32 [N, D].

    It depends on the conversation before the reply only. The engines' pooled embeddings cannot be
    used here, because they include the reply.
    """
    from hgrpo.policy.hidden import read_hidden

    played = [trajectory for trajectory in trajectories if trajectory.turns]
    before = [[turn.span[0] - 1 for turn in trajectory.turns] for trajectory in played]
    tokens = [trajectory.token_ids for trajectory in played]
    return np.concatenate(
        read_hidden(policy, tokens, lambda index, hidden: hidden[before[index]].numpy())
    )
