"""What a student can do on inputs that never change: its greedy and its sampled policy.

An evaluation draws only from its own stream, so it changes nothing in training.
"""

import torch
from torch import Tensor

from hgrpo.formulas.batch import seed_mean
from hgrpo.formulas.full_kl import entropy, reverse_kl
from hgrpo.sandbox import draws
from hgrpo.sandbox.opd.diagnostics import top1_agreement
from hgrpo.sandbox.opd.settings import OpdSettings
from hgrpo.sandbox.opd.tasks import DistillTask
from hgrpo.sandbox.policies import Policy


@torch.no_grad()
def examine(
    settings: OpdSettings, task: DistillTask, policy: Policy, weights: Tensor, step: int
) -> dict[str, Tensor]:
    """Columns of the log, [S] each.

    `test_error` and `entropy`, the mean entropy of a token in nats, are those of greedy outputs.
    The others are those of one sampled output an input. `policy_reverse_kl` is the mean KL of a
    token to the teacher, in nats.
    """
    asked = task.examination(settings.seeds)
    labels = asked.labels[:, :, None, None]
    read = policy.read(weights, asked.inputs)
    greedy = policy.greedy(weights, read)
    shape = (asked.labels.shape[1], 1, 1, settings.seq_len)
    uniform = draws.uniform(settings.seeds, "evaluation", (step,), shape)
    sampled = policy.sample(weights, read, uniform)
    teacher = task.teacher(asked.labels)
    columns = {
        **task.sequences.errors(greedy.actions, labels),
        "entropy": entropy(greedy.table),
        "greedy_reward": task.sequences.rewards(greedy.actions, labels),
        "sampled_reward": task.sequences.rewards(sampled.actions, labels),
        "policy_entropy": entropy(sampled.table),
        "policy_reverse_kl": reverse_kl(sampled.table, teacher),
        "policy_top1_agreement": top1_agreement(sampled.table, teacher),
        "sep_probability": sampled.table[..., task.sequences.separator].exp(),
    }
    return {name: seed_mean(values) for name, values in columns.items()}
