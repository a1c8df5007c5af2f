"""The exact gradients of both objectives, where every input and output can be listed."""

import torch
from torch import Tensor

from hgrpo.learning.objectives.full_kl import reverse_kl
from hgrpo.sandbox.every import every
from hgrpo.sandbox.opd.microscope.estimators import Objective
from hgrpo.sandbox.opd.tasks import DistillTask
from hgrpo.sandbox.policies import Policy, taken

# Pairs of input and output up to which they are listed.
_MOST_PAIRS = 10_000


def can_be_listed(task: DistillTask) -> bool:
    """Whether `exact_gradients` accepts the task."""
    s = task.settings
    return (s.vocab_size * s.actions) ** s.seq_len <= _MOST_PAIRS


def exact_gradients(task: DistillTask, policy: Policy, weights: Tensor) -> dict[Objective, Tensor]:
    """Gradients [S, P] of the objectives that `estimators` states, at `weights` [S, P]."""
    weights = weights.detach().requires_grad_()
    s, seeds = task.settings, len(weights)
    asked = task.sequences.ask(every(s.vocab_size, s.seq_len).expand(seeds, -1, -1))
    actions, table = policy.listed(weights, asked.inputs)
    teacher = task.teacher(asked.labels).expand_as(table)
    own, theirs = (taken(each, actions).sum(-1) for each in (table, teacher))
    chances, kl = own.exp(), reverse_kl(table, teacher).mean(-1)

    def gradient(values: Tensor) -> Tensor:
        """Of the sum over outputs, averaged over inputs; `values` [S, N, K, M]."""
        loss = values.sum((2, 3)).mean(1).sum()
        return torch.autograd.grad(loss, weights, retain_graph=True)[0]

    return {
        "token": gradient(chances.detach() * kl),
        "sequence": gradient(chances * (own - theirs)),
    }
