"""Imitation: cross-entropy on spans of whole trajectories (for SFT and pretraining)."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch.optim import Optimizer

from hgrpo.errors import TrainingError
from hgrpo.learning.checkpoints import Checkpoints
from hgrpo.learning.optimisers import descend, set_lr, warmup_linear
from hgrpo.learning.sft_settings import SftConfig
from hgrpo.policy.logprobs import make_batch, micro_batches, sampled_logprobs
from hgrpo.policy.policy import Policy
from hgrpo.policy.precision import autocast_dtype, cast
from hgrpo.streams import generator

_MAX_GRAD_NORM = 1.0
_EVALUATIONS = 5


@dataclass(frozen=True)
class Example:
    """A token sequence, and the [start, end) spans on which the loss is computed; start >= 1."""

    token_ids: list[int]
    spans: list[tuple[int, int]]


@dataclass
class _Imitator:
    """The policy and its optimisers; implements the protocol `checkpoints.Trained`."""

    policy: Policy
    optimisers: Sequence[Optimizer]
    settings: SftConfig

    STATE = ("weights", "optimisers")

    def state(self) -> dict[str, object]:
        optimisers = [optimiser.state_dict() for optimiser in self.optimisers]
        return {"weights": self.policy.trained_state(), "optimisers": optimisers}

    def load_state(self, state: Mapping[str, object]) -> None:
        self.policy.load_trained_state(state["weights"])
        for optimiser, own in zip(self.optimisers, state["optimisers"], strict=True):
            optimiser.load_state_dict(own)

    def descend(self, batch: Sequence[Example], lr_factor: float) -> tuple[float, float]:
        """Take one step of every optimiser; return the loss and the unclipped gradient norm."""
        set_lr(self.optimisers, lr_factor)
        tokens = sum(end - start for example in batch for start, end in example.spans)
        total = 0.0
        for logprobs in self._logprobs(batch):
            loss = -logprobs.sum() / tokens
            loss.backward()
            total += float(loss.detach())
        parameters = [parameter for _, parameter in self.policy.trainable]
        return total, descend(self.optimisers, parameters, _MAX_GRAD_NORM)

    @torch.no_grad()
    def mean_loss(self, examples: Sequence[Example]) -> float:
        """Mean cross-entropy per token in the spans, in nats."""
        total, tokens = 0.0, 0
        for logprobs in self._logprobs(examples):
            total -= float(logprobs.sum())
            tokens += len(logprobs)
        return total / tokens

    def _logprobs(self, examples: Sequence[Example]) -> Iterator[torch.Tensor]:
        """Yield the log-probabilities [N] of the tokens in the spans, for each micro-batch."""
        autocast = autocast_dtype(self.policy.config, self.policy.device)
        lengths = [len(example.token_ids) for example in examples]
        for part in micro_batches(lengths, self.settings.microbatch_tokens):
            chosen = [examples[i] for i in part]
            spans = [example.spans for example in chosen]
            batch = make_batch([e.token_ids for e in chosen], spans, self.policy.device)
            with cast(self.policy.device, autocast):
                logprobs, _ = sampled_logprobs(self.policy.causal_lm, batch)
            if not logprobs.isfinite().all():
                raise TrainingError("imitation: a log-probability is not finite")
            yield logprobs


def imitate(
    policy: Policy,
    optimisers: Sequence[Optimizer],
    train: Sequence[Example],
    validation: Sequence[Example],
    settings: SftConfig,
    on_step: Callable[[dict], None] = lambda row: None,
    checkpoints: Checkpoints | None = None,
) -> list[dict]:
    """Train on `train`; resume after the newest step in `checkpoints`.

    Losses are means over the tokens in the spans, in nats. The stream ("imitation", seed, epoch)
    draws the order of the examples, so a resumed run takes the same batches.

    Args:
        validation: examples whose loss is measured every max(1, total steps // `_EVALUATIONS`)
            steps and after the last step. May be empty.
        on_step: called with every row, including the rows read from `checkpoints`.

    Returns:
        Rows of {step, loss, lr_factor, grad_norm, validation_loss or None}.

    Raises:
        TrainingError: a log-probability, a gradient or a weight is not finite.
        UserError: a checkpoint is damaged.
    """
    total = max(1, math.ceil(len(train) * settings.epochs / settings.batch_trajectories))
    every = max(1, total // _EVALUATIONS)
    imitator = _Imitator(policy, optimisers, settings)
    rows = checkpoints.restore(imitator) if checkpoints else []
    for row in rows:
        on_step(row)
    for step, chosen in islice(enumerate(_batches(len(train), settings)), len(rows), total):
        factor = warmup_linear(step, total, settings.warmup_steps)
        loss, norm = imitator.descend([train[i] for i in chosen], factor)
        checked = validation and (step == total - 1 or step % every == every - 1)
        row = {"step": step, "loss": loss, "lr_factor": factor, "grad_norm": norm}
        row["validation_loss"] = imitator.mean_loss(validation) if checked else None
        rows.append(row)
        if checkpoints:
            checkpoints.save(imitator, rows)
        on_step(row)
    return rows


def _batches(size: int, settings: SftConfig) -> Iterator[list[int]]:
    """Yield the indices of each step's examples, epoch after epoch, without end."""
    order: list[int] = []
    epoch = 0
    while True:
        while len(order) < settings.batch_trajectories:
            order.extend(generator("imitation", settings.seed, epoch).permutation(size))
            epoch += 1
        yield order[: settings.batch_trajectories]
        order = order[settings.batch_trajectories :]
