"""Imitation: cross-entropy on chosen tokens of whole trajectories (SFT and pretraining)."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch.optim import Optimizer

from hgrpo.learning.checkpoints import Checkpoints
from hgrpo.learning.optimisers import clip_gradients, set_lr, warmup_linear
from hgrpo.policy.logprobs import make_batch, micro_batches, sampled_logprobs
from hgrpo.policy.policy import Policy
from hgrpo.policy.precision import cast
from hgrpo.streams import generator

_MAX_GRAD_NORM = 1.0


@dataclass(frozen=True)
class Example:
    """A token sequence and its [start, end) parts that the loss is computed on; start >= 1."""

    token_ids: list[int]
    spans: list[tuple[int, int]]


@dataclass(frozen=True)
class ImitationSettings:
    """How long to imitate and in what pieces.

    Attributes:
        batch: trajectories of an optimiser step.
        microbatch_tokens: padded tokens of one forward and backward pass.
        seed: names the order of examples.
        autocast: type of the passes; None is float32.
    """

    epochs: float
    batch: int
    warmup_steps: int
    microbatch_tokens: int
    seed: int
    autocast: torch.dtype | None


@dataclass
class _Imitator:
    """The policy and its optimisers, as checkpoints keep them; see `checkpoints.Trained`."""

    policy: Policy
    optimisers: Sequence[Optimizer]

    STATE = ("weights", "optimisers")

    def state(self) -> dict[str, object]:
        optimisers = [optimiser.state_dict() for optimiser in self.optimisers]
        return {"weights": self.policy.trained_state(), "optimisers": optimisers}

    def load_state(self, state: Mapping[str, object]) -> None:
        self.policy.load_trained_state(state["weights"])
        for optimiser, own in zip(self.optimisers, state["optimisers"], strict=True):
            optimiser.load_state_dict(own)


def imitate(
    policy: Policy,
    optimisers: Sequence[Optimizer],
    train: Sequence[Example],
    validation: Sequence[Example],
    settings: ImitationSettings,
    on_step: Callable[[dict], None] = lambda row: None,
    evaluations: int = 5,
    checkpoints: Checkpoints | None = None,
) -> list[dict]:
    """Train on `train`, resuming after the newest step that `checkpoints` kept.

    Losses are means over the chosen tokens, in nats. The order of examples is the stream
    ("imitation", seed, epoch), so a resumed run takes the same batches.

    Args:
        on_step: called with every row, those of earlier runs of the same training included.
        evaluations: how often the loss on `validation` is measured.

    Returns:
        Rows of {step, loss, lr_factor, grad_norm, validation_loss or None}.

    Raises:
        TrainingError: a gradient is not finite.
        UserError: a checkpoint is damaged.
    """
    total = max(1, math.ceil(len(train) * settings.epochs / settings.batch))
    every = max(1, total // evaluations)
    imitator = _Imitator(policy, optimisers)
    rows = checkpoints.restore(imitator) if checkpoints else []
    done = len(rows)
    for row in rows:
        on_step(row)
    for step, chosen in enumerate(islice(_batches(len(train), settings), total)):
        if step < done:
            continue
        factor = warmup_linear(step, total, settings.warmup_steps)
        loss, norm = _descend(policy, optimisers, [train[i] for i in chosen], factor, settings)
        checked = validation and (step == total - 1 or step % every == every - 1)
        rows.append(
            {
                "step": step,
                "loss": loss,
                "lr_factor": factor,
                "grad_norm": norm,
                "validation_loss": mean_loss(policy, validation, settings) if checked else None,
            }
        )
        if checkpoints:
            checkpoints.save(imitator, rows)
        on_step(rows[-1])
    return rows


def _batches(size: int, settings: ImitationSettings) -> Iterator[list[int]]:
    """Indices of the examples of each step, epoch after epoch without end."""
    order: list[int] = []
    epoch = 0
    while True:
        while len(order) < settings.batch:
            order.extend(generator("imitation", settings.seed, epoch).permutation(size))
            epoch += 1
        yield order[: settings.batch]
        order = order[settings.batch :]


def _descend(
    policy: Policy,
    optimisers: Sequence[Optimizer],
    batch: Sequence[Example],
    lr_factor: float,
    settings: ImitationSettings,
) -> tuple[float, float]:
    """Take one step of every optimiser; the loss, and the gradient's norm before clipping."""
    set_lr(optimisers, lr_factor)
    loss = _accumulate(policy, batch, settings)
    norm = clip_gradients([parameter for _, parameter in policy.trainable], _MAX_GRAD_NORM)
    for optimiser in optimisers:
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
    return loss, norm


@torch.no_grad()
def mean_loss(policy: Policy, examples: Sequence[Example], settings: ImitationSettings) -> float:
    """Mean cross-entropy per chosen token, in nats."""
    total, tokens = 0.0, 0
    for part in micro_batches([len(e.token_ids) for e in examples], settings.microbatch_tokens):
        logprobs = _logprobs(policy, [examples[i] for i in part], settings.autocast)
        total -= float(logprobs.sum())
        tokens += len(logprobs)
    return total / tokens


def _accumulate(policy: Policy, batch: Sequence[Example], settings: ImitationSettings) -> float:
    """Add the gradient of a batch's mean loss, micro-batch by micro-batch; return the loss."""
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
    """Log-probabilities [N] of the chosen tokens."""
    spans = [e.spans for e in examples]
    batch = make_batch([e.token_ids for e in examples], spans, policy.device)
    with cast(policy.device, autocast):
        return sampled_logprobs(policy.causal_lm, batch)[0]
