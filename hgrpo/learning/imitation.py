"""Imitation: cross-entropy on chosen tokens of whole trajectories (SFT and pretraining)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.optim import Optimizer

from hgrpo.learning.optimisers import clip_gradients, set_lr, warmup_linear
from hgrpo.policy.logprobs import (
    make_batch,
    micro_batches,
    sampled_logprobs,
)
from hgrpo.policy.policy import Policy
from hgrpo.policy.precision import cast
from hgrpo.streams import generator

_MAX_GRAD_NORM = 1.0


@dataclass(frozen=True)
class Example:
    """A token sequence and the [start, end) parts of it the loss is on; start >= 1."""

    token_ids: list[int]
    spans: list[tuple[int, int]]


@dataclass(frozen=True)
class ImitationSettings:
    """How long and in what pieces to imitate."""

    epochs: float
    batch: int
    warmup_steps: int
    microbatch_tokens: int
    seed: int
    autocast: torch.dtype | None


def imitate(
    policy: Policy,
    optimisers: Sequence[Optimizer],
    train: Sequence[Example],
    validation: Sequence[Example],
    settings: ImitationSettings,
    on_step: Callable[[dict], None] = lambda row: None,
    evaluations: int = 5,
) -> list[dict]:
    """Train on `train`; rows of {step, loss, lr_factor, grad_norm, validation_loss or None}.

    Losses are means over the chosen tokens, in nats. The order of examples is the stream
    ("imitation", seed, epoch).
    """
    total = max(1, math.ceil(len(train) * settings.epochs / settings.batch))
    every = max(1, total // evaluations)
    parameters = [parameter for _, parameter in policy.trainable]
    order: list[int] = []
    epoch = 0
    rows: list[dict] = []
    for step in range(total):
        while len(order) < settings.batch:
            order.extend(generator("imitation", settings.seed, epoch).permutation(len(train)))
            epoch += 1
        chosen, order = order[: settings.batch], order[settings.batch :]
        factor = warmup_linear(step, total, settings.warmup_steps)
        set_lr(optimisers, factor)
        loss = _accumulate(policy, [train[i] for i in chosen], settings)
        norm = clip_gradients(parameters, _MAX_GRAD_NORM)
        for optimiser in optimisers:
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        last = step == total - 1
        checked = validation and (last or step % every == every - 1)
        rows.append(
            {
                "step": step,
                "loss": loss,
                "lr_factor": factor,
                "grad_norm": norm,
                "validation_loss": mean_loss(policy, validation, settings) if checked else None,
            }
        )
        on_step(rows[-1])
    return rows


@torch.no_grad()
def mean_loss(policy: Policy, examples: Sequence[Example], settings: ImitationSettings) -> float:
    """Mean cross-entropy per chosen token, in nats."""
    total, tokens = 0.0, 0
    for part in micro_batches([len(e.token_ids) for e in examples], settings.microbatch_tokens):
        logprobs = _logprobs(policy, [examples[i] for i in part], settings.autocast)
        total -= float(logprobs.sum())
        tokens += len(logprobs)
    return total / tokens


def _accumulate(policy: Policy, batch: list[Example], settings: ImitationSettings) -> float:
    tokens = sum(end - start for example in batch for start, end in example.spans)
    total = 0.0
    for part in micro_batches([len(e.token_ids) for e in batch], settings.microbatch_tokens):
        logprobs = _logprobs(policy, [batch[i] for i in part], settings.autocast)
        loss = -logprobs.sum() / tokens
        loss.backward()
        total += float(loss.detach())
    return total


def _logprobs(
    policy: Policy, examples: list[Example], autocast: torch.dtype | None
) -> torch.Tensor:
    spans = [e.spans for e in examples]
    batch = make_batch([e.token_ids for e in examples], spans, policy.device)
    with cast(policy.device, autocast):
        return sampled_logprobs(policy.causal_lm, batch)[0]
