"""Computes the columns of the log for evaluations and training batches.

Evaluations use fixed inputs and their own random stream, so they do not affect training.
"""

import torch
from torch import Tensor

from hgrpo.formulas.batch import Seen, seed_mean, taken
from hgrpo.formulas.distillation import overlap_at_k, teacher_of, top1_agreement
from hgrpo.formulas.full_kl import entropy, forward_kl, reverse_kl
from hgrpo.sandbox import draws
from hgrpo.sandbox.opd.settings import OpdSettings
from hgrpo.sandbox.opd.tasks import DistillTask
from hgrpo.sandbox.policies import Policy


@torch.no_grad()
def examine(
    settings: OpdSettings, task: DistillTask, policy: Policy, weights: Tensor, step: int
) -> dict[str, Tensor]:
    """Columns of the log, [S] each.

    `test_error`, `greedy_reward` and `entropy` are computed from greedy outputs, and all other
    columns from one sampled output per input. Entropies and `policy_reverse_kl`, the KL divergence
    to the teacher, are means per token in nats.
    """
    questions = task.examination(settings.seeds)
    labels = questions.labels[:, :, None, None]
    read = policy.read(weights, questions.inputs)
    greedy = policy.greedy(weights, read)
    shape = (questions.labels.shape[1], 1, 1, settings.seq_len)
    uniform = draws.uniform(settings.seeds, "evaluation", (step,), shape)
    sampled = policy.sample(weights, read, uniform)
    teacher = task.teacher(questions.labels)
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


def diagnose(seen: Seen, overlap: int) -> dict[str, Tensor]:
    """Compare student and teacher on a batch; each column is a mean per seed, [S].

    Divergences and entropies are in nats.

    Args:
        overlap: size k of the top-k sets that are compared.
    """
    student, teacher = seen.table.detach(), teacher_of(seen)
    sampled = seen.rollout.behaviour - taken(teacher, seen.rollout.actions)
    columns = {
        "reverse_kl": reverse_kl(student, teacher),
        "forward_kl": forward_kl(student, teacher),
        "sampled_reverse_kl": sampled,
        "teacher_entropy": entropy(teacher),
        "student_entropy": entropy(student),
        "entropy_gap": entropy(student) - entropy(teacher),
        "top1_agreement": top1_agreement(student, teacher),
        f"overlap_at_{overlap}": overlap_at_k(student, teacher, overlap),
    }
    return {f"diag_{name}": seen.mean(values) for name, values in columns.items()}
