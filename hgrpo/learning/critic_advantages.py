"""Advantages of a batch from a critic: estimates per token, whitened over the batch."""

from collections.abc import Sequence

import numpy as np
import torch

from hgrpo.learning.batch import SampledSequence, TrainingSequence, training_return
from hgrpo.learning.critic import Critic
from hgrpo.learning.gae import ESTIMATORS, Estimate
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.settings import TrainingConfig
from hgrpo.trajectories.trajectory import Trajectory

# The least deviation that whitening divides by.
FLOOR = 1e-8


def estimates(
    critic: Critic,
    trajectories: Sequence[Trajectory],
    values: Sequence[np.ndarray],
    method: MethodConfig,
    training: TrainingConfig,
) -> list[Estimate]:
    """The trajectories' estimates; `values` are the critic's of their sampled tokens, [N] each.

    The penalty for inadmissible turns is subtracted from the last turn's reward. With `truncation:
    bootstrap`, the critic also values the state after the last turn of each truncated trajectory:
    all its tokens with the environment's last answer, as before any reply, as far as the critic has
    positions.
    """
    bootstraps = training.gae.truncation == "bootstrap"
    cut = [k for k, t in enumerate(trajectories) if bootstraps and t.truncated]
    finals = np.zeros(len(trajectories))
    longest = critic.body.architecture.max_position_embeddings
    finals[cut] = [row[0] for row in critic.values([_after(trajectories[k], longest) for k in cut])]
    made = []
    for trajectory, row, final in zip(trajectories, values, finals, strict=True):
        rewards = np.array([turn.env_reward for turn in trajectory.turns], dtype=np.float64)
        penalised = training_return(trajectory, training.invalid_action_penalty)
        rewards[-1] += penalised - trajectory.env_return
        ends = np.zeros(len(row), dtype=bool)
        ends[np.cumsum([turn.span[1] - turn.span[0] for turn in trajectory.turns]) - 1] = True
        made.append(ESTIMATORS[method.advantage](rewards, row, ends, training.gae, final))
    return made


def _after(trajectory: Trajectory, longest: int) -> SampledSequence:
    state = [*trajectory.token_ids, *trajectory.unread][: longest - 1]
    # The value before a token does not depend on the token, so 0 stands for any reply.
    return SampledSequence([*state, 0], [(len(state), len(state) + 1)], name=trajectory.name)


def store_advantages(
    trajectories: Sequence[Trajectory],
    sequences: Sequence[TrainingSequence],
    estimates: Sequence[Estimate],
    trained: Sequence[bool],
) -> dict[str, float]:
    """Whiten the estimates and store them, in the sequences per token and in the turns as means.

    A turn's credit is the mean of its tokens' advantages before the whitening. The constants come
    from the trajectories that are `trained` on.

    Returns:
        Log entries: the constants.
    """
    used = [e.advantages for e, part in zip(estimates, trained, strict=True) if part]
    tokens = np.concatenate(used) if used else np.zeros(1)
    mean, deviation = float(tokens.mean()), float(tokens.std())
    for trajectory, sequence, made in zip(trajectories, sequences, estimates, strict=True):
        white = (made.advantages - mean) / max(deviation, FLOOR)
        sequence.advantages = torch.from_numpy(white).float()
        cuts = np.cumsum([turn.span[1] - turn.span[0] for turn in trajectory.turns])[:-1]
        raw, whitened = np.split(made.advantages, cuts), np.split(white, cuts)
        for turn, credit, advantage in zip(trajectory.turns, raw, whitened, strict=True):
            turn.credit, turn.advantage = float(credit.mean()), float(advantage.mean())
    return {"advantage_mean": mean, "advantage_deviation": deviation}
