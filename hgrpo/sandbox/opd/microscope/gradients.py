"""Computes exact gradients, and the estimators' gradients on batches, at fixed weights."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hgrpo.formulas.batch import Questions, Rollout
from hgrpo.formulas.full_kl import reverse_kl
from hgrpo.sandbox import draws
from hgrpo.sandbox.every import every
from hgrpo.sandbox.opd import acquire
from hgrpo.sandbox.opd.microscope.estimators import ESTIMATORS, Objective
from hgrpo.sandbox.opd.tasks import DistillTask
from hgrpo.sandbox.policies import Policy, taken

# Maximum number of tokens in one backward pass, to limit memory.
_AT_ONCE = 40_000
# Maximum number of (input, output) pairs for which sums over all outputs are computed.
_MOST_PAIRS = 10_000


@dataclass(frozen=True)
class Batches:
    """A request for `count` batches of `size` rollouts each. `name` selects the random stream."""

    name: str
    count: int
    size: int


def sampled(
    task: DistillTask, policy: Policy, seed: int, weights: Tensor, batches: Batches
) -> Iterator[Rollout]:
    """Sample the batches of one seed, a few at a time. The first axis is the batch number."""
    s, name = task.settings, ("microscope", batches.name, task.settings.seq_len)
    count = batches.count * batches.size
    tokens = draws.integers((seed,), "data", name, (count, s.seq_len), s.vocab_size)
    uniform = draws.uniform((seed,), "action", name, (count, 1, 1, s.seq_len))
    whole = acquire.answer(task, policy, weights, task.sequences.questions(tokens), uniform)
    parts = (whole.inputs[acquire.VIEW], whole.labels, whole.actions, whole.behaviour)
    apart = [part.squeeze(0).unflatten(0, (batches.count, batches.size)) for part in parts]
    step = max(1, _AT_ONCE // (2 * batches.size * s.seq_len))
    for begin in range(0, batches.count, step):
        inputs, labels, actions, behaviour = (part[begin : begin + step] for part in apart)
        yield acquire.build(task, Questions(inputs, labels), actions, behaviour)


def gradients(
    policy: Policy, weights: Tensor, batches: Iterable[Rollout], names: Sequence[str]
) -> dict[str, tuple[Tensor, Tensor]]:
    """Map each estimator to its losses [C] and gradients [C, P] on C batches.

    Args:
        weights: [1, P].
        batches: as returned by `sampled`.
    """
    parts = [_some(policy, weights, some, names) for some in batches]
    return {
        name: tuple(torch.cat([part[name][place] for part in parts]) for place in (0, 1))
        for name in names
    }


def _some(
    policy: Policy, weights: Tensor, batches: Rollout, names: Sequence[str]
) -> dict[str, tuple[Tensor, Tensor]]:
    repeated = weights.detach().repeat(len(batches.actions), 1).requires_grad_()
    seen = acquire.see(batches, policy, repeated)
    results = {}
    for name in names:
        losses = ESTIMATORS[name].loss(seen)
        (gradient,) = torch.autograd.grad(losses.sum(), repeated, retain_graph=True)
        results[name] = losses.detach(), gradient
    return results


def can_be_listed(task: DistillTask) -> bool:
    """Whether the task has few enough inputs and outputs for `exact_gradients`."""
    s = task.settings
    return (s.vocab_size * s.actions) ** s.seq_len <= _MOST_PAIRS


def exact_gradients(task: DistillTask, policy: Policy, weights: Tensor) -> dict[Objective, Tensor]:
    """Exact gradients [S, P] of the objectives in `estimators` at `weights` [S, P]."""
    weights = weights.detach().requires_grad_()
    s, seeds = task.settings, len(weights)
    questions = task.sequences.questions(every(s.vocab_size, s.seq_len).expand(seeds, -1, -1))
    actions, table = policy.listed(weights, questions.inputs)
    teacher = task.teacher(questions.labels).expand_as(table)
    ours, theirs = (taken(each, actions).sum(-1) for each in (table, teacher))
    chances, kl = ours.exp(), reverse_kl(table, teacher).mean(-1)

    def gradient(values: Tensor) -> Tensor:
        """Sum `values` [S, N, K, M] over outputs, average over inputs, and differentiate."""
        loss = values.sum((2, 3)).mean(1).sum()
        return torch.autograd.grad(loss, weights, retain_graph=True)[0]

    return {
        "token": gradient(chances.detach() * kl),
        "sequence": gradient(chances * (ours - theirs)),
    }
