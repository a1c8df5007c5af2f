"""One update of a tiny policy on trajectories with made-up rewards."""

import numpy as np
import torch
from torch.optim import SGD

from hgrpo.learning.method import ObjectiveConfig
from hgrpo.learning.settings import KlConfig, TrainingConfig
from hgrpo.learning.update import Learner

TRAINING = TrainingConfig(
    rollouts_per_task=8, minibatches=1, kl=KlConfig(init=0.1), max_grad_norm=1e9
)


def rewarded(trajectories):
    """Groups of 8 with made-up rewards and progress: an untrained policy earns none."""
    rng = np.random.default_rng(5)
    for trajectory in trajectories:
        trajectory.turns[-1].env_reward = float(rng.integers(2))
        for turn in trajectory.turns:
            turn.progress = float(rng.normal())
    return [trajectories[i : i + 8] for i in range(0, len(trajectories), 8)]


def gradient(policy, batch, training=TRAINING, order=None, **objective):
    """The gradient one update step applies, and its diagnostics; the policy is left as it was.

    `objective` is the section of that name.
    """
    before = policy.trained_state()
    parameters = [parameter for _, parameter in policy.trainable]
    learner = Learner(
        policy,
        SGD(parameters, lr=1.0),
        training.kl.init,
        training,
        None,
        objective=ObjectiveConfig(**objective),
    )
    row = learner.update(batch, list(range(len(batch))) if order is None else order)
    moved = torch.cat(
        [(before[name] - parameter.detach()).flatten() for name, parameter in policy.trainable]
    )
    policy.load_trained_state(before)
    return moved, row
