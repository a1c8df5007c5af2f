"""The gradient of every batch and estimator, at weights that stay as they are."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hgrpo.sandbox import draws
from hgrpo.sandbox.opd import acquire
from hgrpo.sandbox.opd.microscope.estimators import ESTIMATORS
from hgrpo.sandbox.opd.tasks import DistillTask
from hgrpo.sandbox.policies import Policy
from hgrpo.sandbox.rollout import Rollout
from hgrpo.sandbox.tasks.questions import Questions

# Tokens that are differentiated in one pass; bounds memory.
_AT_ONCE = 40_000


@dataclass(frozen=True)
class Batches:
    """`count` batches of `size` rollouts; `name` tells their draws from those of other batches."""

    name: str
    count: int
    size: int


def sampled(
    task: DistillTask, policy: Policy, seed: int, weights: Tensor, batches: Batches
) -> Iterator[Rollout]:
    """The batches of one seed, a few at a time, each as a seed of its own; `weights` are [1, P]."""
    s, name = task.settings, ("microscope", batches.name, task.settings.seq_len)
    count = batches.count * batches.size
    tokens = draws.integers((seed,), "data", name, (count, s.seq_len), s.vocab_size)
    uniform = draws.uniform((seed,), "action", name, (count, 1, 1, s.seq_len))
    whole = acquire.answer(task, policy, weights, task.sequences.ask(tokens), uniform)
    parts = (whole.inputs[acquire.VIEW], whole.labels, whole.actions, whole.behaviour)
    apart = [part.squeeze(0).unflatten(0, (batches.count, batches.size)) for part in parts]
    step = max(1, _AT_ONCE // (2 * batches.size * s.seq_len))
    for begin in range(0, batches.count, step):
        inputs, labels, actions, behaviour = (part[begin : begin + step] for part in apart)
        yield acquire.build(task, Questions(inputs, labels), actions, behaviour)


def gradients(
    policy: Policy, weights: Tensor, batches: Iterable[Rollout], names: Sequence[str]
) -> dict[str, tuple[Tensor, Tensor]]:
    """For each estimator the loss [C] and the gradient [C, P] of each of C batches.

    Args:
        weights: [1, P].
        batches: as `sampled` gives them.
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
    found = {}
    for name in names:
        losses = ESTIMATORS[name].loss(seen)
        (gradient,) = torch.autograd.grad(losses.sum(), repeated, retain_graph=True)
        found[name] = losses.detach(), gradient
    return found
