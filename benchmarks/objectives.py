"""Measure the cost of a critic, an entropy bonus, a filter and a gradient analysis.

The benchmark collects the trajectories of one step: 16 groups of 8, with at most 12 turns each. It
then times four kinds of update on these trajectories. Each update starts from the same policy, and
the four kinds alternate:
- a GRPO update, the baseline;
- a GRPO update with an entropy bonus, whose gradient covers the whole vocabulary;
- a PPO update, which includes computing the critic's values and updating the critic;
- the gradient analysis, which computes four gradients per group, their inner products, and the
  log-probs of the reference.
The benchmark also times the rollout filter and the advantage estimation, and reports each time as a
share of the time of a GRPO step. All times are process time on one thread.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import torch
from laptop import Laptop, prepare
from torch.optim import AdamW
from transformers.utils import logging

from hgrpo.credit.base import Context, Group, make_assigner
from hgrpo.learning.batch import group_advantages, training_sequences
from hgrpo.learning.chosen import measures
from hgrpo.learning.critic import Critic, estimates, store_advantages, value_head
from hgrpo.learning.filters.batch import filter_batch
from hgrpo.learning.filters.settings import FilterConfig
from hgrpo.learning.gradients.components import Measuring, group_gradients, group_products
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.settings import KlConfig, TrainingConfig
from hgrpo.learning.update import Learner
from hgrpo.policy.precision import autocast_dtype

GROUPS, ROLLOUTS, TURNS, REPLY, REPEATS = 16, 8, 12, 12, 5
KL = KlConfig(init=0.0, watch=False)
TRAINING = TrainingConfig(kl=KL, minibatches=2)
FLAT, PPO = MethodConfig(name="flatGRPO"), MethodConfig(name="PPO", advantage="gae")


def measure(laptop: Laptop) -> dict:
    """Seconds of each kind of update, and ratios to the GRPO update."""
    policy = laptop.policy()
    collector = laptop.collector(policy, GROUPS * ROLLOUTS, TURNS, REPLY)
    played, collect_s = _timed(
        lambda: collector.collect(laptop.tasks[:GROUPS], ROLLOUTS, ("benchmark",))
    )
    flat = [trajectory for group in played for trajectory in group]
    assigner = make_assigner(FLAT.credit, Context())
    for group in played:
        named = Group(group, ("benchmark", group[0].task.task_id))
        group_advantages(named, assigner.assign(named), FLAT, TRAINING)
    dtype = autocast_dtype(laptop.model, policy.device)
    start, order = policy.trained_state(), list(range(len(flat)))
    body = laptop.policy()
    head = value_head(body)
    critic_optimiser = AdamW([*(p for _, p in body.trainable), *head.parameters()], lr=1e-4)
    config = TRAINING.critic
    tokens = TRAINING.microbatch_tokens
    critic = Critic(body, head, critic_optimiser, config, tokens, dtype)
    critic.calibrate(np.array([trajectory.env_return for trajectory in flat]))

    def grpo(training: TrainingConfig = TRAINING) -> None:
        policy.load_trained_state(start)
        optimiser = AdamW([p for _, p in policy.trainable], lr=training.lr)
        learner = Learner(policy, optimiser, training.kl.init, training, dtype)
        learner.update(training_sequences(flat), order)

    def ppo() -> None:
        sequences = training_sequences(flat)
        before = critic.values(sequences)
        made = estimates(critic, flat, before, PPO, TRAINING)
        store_advantages(flat, sequences, made, [True] * len(flat))
        critic.update(sequences, before, made, order)
        grpo()

    policy.load_reference(laptop.folder / "sft" / "adapter")
    optimiser = AdamW([p for _, p in policy.trainable])
    scorer = Learner(policy, optimiser, KL.init, TRAINING, dtype)
    measuring = Measuring(TRAINING, "k3", dtype)

    def analysis() -> None:
        groups = [training_sequences(group) for group in played]
        policy.load_trained_state(start)
        scorer.score_reference([sequence for group in groups for sequence in group])
        gradients = (group_gradients(policy, group, measuring) for group in groups)
        group_products(gradients, len(groups))

    sides = {
        "grpo": grpo,
        "entropy": lambda: grpo(TRAINING.model_copy(update={"entropy_bonus": 0.001})),
        "ppo": ppo,
        "analysis": analysis,
    }
    for side in sides.values():
        side()
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(REPEATS):
        for name, side in sides.items():
            seconds[name].append(_timed(side)[1])
    step = collect_s + median(seconds["grpo"])
    values = [np.zeros(t.action_tokens) for t in flat]
    filters = FilterConfig(strategy="top_p", value=0.9, include_zero=False)
    small = {
        "filter": lambda: filter_batch(measures(played, TRAINING), filters),
        "gae": lambda: estimates(critic, flat, values, PPO, TRAINING),
    }
    return {
        "trajectories": len(flat),
        "grpo_s": median(seconds["grpo"]),
        "ratios": {
            name: sorted(b / a for a, b in zip(seconds["grpo"], seconds[name], strict=True))
            for name in ("entropy", "ppo", "analysis")
        },
        "shares": {
            name: median(_timed(side)[1] for _ in range(REPEATS)) / step
            for name, side in small.items()
        },
    }


def _timed(side: Callable[[], object]) -> tuple[object, float]:
    began = time.process_time()
    result = side()
    return result, time.process_time() - began


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    print(json.dumps(measure(prepare(Path(sys.argv[1])))))
