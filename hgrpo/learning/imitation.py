"""Imitation learning: cross-entropy on parts of expert trajectories (SFT) or on their whole text.

Training on the whole text is next-token prediction. It is used to pretrain the tiny base model.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, reduce
from itertools import islice
from pathlib import Path
from typing import TypeVar

import pyarrow.parquet as pq
import torch
from torch.optim import Optimizer

from hgrpo import parquet
from hgrpo.agent.conversation import Conversation
from hgrpo.errors import TrainingError, UserError, one_line
from hgrpo.games.streams import generator
from hgrpo.learning.checkpoints import Checkpoints
from hgrpo.learning.optimisers import descend, set_lr, sft_optimisers, warmup_linear
from hgrpo.learning.sft_settings import SftConfig
from hgrpo.policy.load import load_policy
from hgrpo.policy.logprobs import make_batch, micro_batches, sampled_logprobs
from hgrpo.policy.policy import Policy
from hgrpo.policy.precision import autocast_dtype, cast
from hgrpo.policy.settings import ModelConfig

_MAX_GRAD_NORM = 1.0
_EVALUATIONS = 5
# On a CPU, each batch is split into this many parts, which run in parallel. For a tiny model on two
# cores, this takes 0.6 times as long as two threads per operation, as operations are short.
_CPU_SHARES = 2
# Set all values explicitly, because defaults of settings are not part of the code hash.
_PRETRAINING = SftConfig(
    epochs=1.0,
    batch_trajectories=32,
    matrix_lr=0.012,
    lr=2e-3,
    warmup_steps=10,
    weight_decay=0.0,
    microbatch_tokens=2048,
)

T = TypeVar("T")


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
    workers: Executor

    STATE = ("weights", "optimisers")

    def state(self) -> dict[str, object]:
        optimisers = [optimiser.state_dict() for optimiser in self.optimisers]
        return {"weights": self.policy.trained_state(), "optimisers": optimisers}

    def load_state(self, state: Mapping[str, object]) -> None:
        self.policy.load_trained_state(state["weights"])
        for optimiser, saved in zip(self.optimisers, state["optimisers"], strict=True):
            optimiser.load_state_dict(saved)

    def descend(self, batch: Sequence[Example], lr_factor: float) -> tuple[float, float]:
        """Take one step of every optimiser; return the loss and the unclipped gradient norm."""
        set_lr(self.optimisers, lr_factor)
        tokens = sum(end - start for example in batch for start, end in example.spans)
        losses, gradients = zip(
            *self._by_shares(partial(self._differentiate, tokens), batch), strict=True
        )
        parameters = [parameter for _, parameter in self.policy.trainable]
        for parameter, parts in zip(parameters, zip(*gradients, strict=True), strict=True):
            parameter.grad = reduce(_added, parts)
        return sum(losses), descend(self.optimisers, parameters, _MAX_GRAD_NORM)

    def mean_loss(self, examples: Sequence[Example]) -> float:
        totals, tokens = zip(*self._by_shares(self._measure, examples), strict=True)
        return sum(totals) / sum(tokens)

    def _by_shares(
        self, compute: Callable[[list[list[Example]]], T], examples: Sequence[Example]
    ) -> list[T]:
        """Divide the micro-batches into parts, and apply `compute` to the parts in parallel.

        The number of parts, and therefore the order of summation, does not depend on the number of
        threads. Results are bitwise identical for 1 to 3 threads. With 4 or more threads, each part
        is computed by several threads, which may change the rounding of matrix products.
        """
        shares = _CPU_SHARES if self.policy.device.type == "cpu" else 1
        lengths = [len(example.token_ids) for example in examples]
        # All parts have a micro-batch in memory at the same time, so micro-batches must be smaller.
        parts = micro_batches(lengths, self.settings.microbatch_tokens // shares)
        chosen = [[examples[i] for i in part] for part in parts]
        return list(
            self.workers.map(compute, [chosen[k::shares] for k in range(min(shares, len(chosen)))])
        )

    def _differentiate(
        self, tokens: int, parts: list[list[Example]]
    ) -> tuple[float, list[torch.Tensor | None]]:
        """Loss and gradients of one part of the batch; gradients of unused weights are None."""
        parameters = [p for _, p in self.policy.trainable]
        total, gradients = 0.0, [None] * len(parameters)
        for part in parts:
            loss = -self._logprobs(part).sum() / tokens
            # Several threads compute gradients at the same time. With `backward`, all of them would
            # add to the same `grad`.
            of_part = torch.autograd.grad(loss, parameters, allow_unused=True)
            gradients = list(map(_added, gradients, of_part))
            total += float(loss.detach())
        return total, gradients

    @torch.no_grad()
    def _measure(self, parts: list[list[Example]]) -> tuple[float, int]:
        """Sum of a part's negative log-probabilities in nats, and its number of tokens."""
        logprobs = [self._logprobs(part) for part in parts]
        return -sum(float(each.sum()) for each in logprobs), sum(map(len, logprobs))

    def _logprobs(self, examples: list[Example]) -> torch.Tensor:
        """Log-probabilities [N] of the tokens in the spans of one micro-batch."""
        batch = make_batch(
            [example.token_ids for example in examples],
            [example.spans for example in examples],
            self.policy.device,
        )
        with cast(self.policy.device, autocast_dtype(self.policy.config, self.policy.device)):
            logprobs, _ = sampled_logprobs(self.policy.causal_lm, batch)
        if not logprobs.isfinite().all():
            raise TrainingError("imitation: a log-probability is not finite")
        return logprobs


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

    Losses are means over the tokens in the spans, in nats. The random stream ("imitation", seed,
    epoch) determines the order of the examples, so that a resumed run uses the same batches.

    Args:
        validation: examples for the validation loss, which is computed every
            max(1, total steps // `_EVALUATIONS`) steps and after the last step. May be empty.
        on_step: called with every row, including rows restored from `checkpoints`.

    Returns:
        One row per step, with the keys step, loss, lr_factor, grad_norm and validation_loss (None
        if it was not computed).

    Raises:
        TrainingError: a log-probability, a gradient or a weight is not finite.
        UserError: a checkpoint is damaged.
    """
    total = max(1, math.ceil(len(train) * settings.epochs / settings.batch_trajectories))
    every = max(1, total // _EVALUATIONS)
    with _workers(policy.device) as workers:
        imitator = _Imitator(policy, optimisers, settings, workers)
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


def _added(total: torch.Tensor | None, more: torch.Tensor | None) -> torch.Tensor | None:
    """Add the gradient `more` to `total` in place; None represents a missing gradient."""
    if total is None or more is None:
        # Copy, because autograd may return the same tensor for two weights.
        return more.clone() if more is not None else total
    return total.add_(more)


def _workers(device: torch.device) -> Executor:
    """Thread pool for the parts of a batch; on a CPU, its threads share the cores of the job."""
    threads = torch.get_num_threads() if device.type == "cpu" else 1
    return ThreadPoolExecutor(
        min(threads, _CPU_SHARES),
        initializer=torch.set_num_threads,
        initargs=(max(1, threads // _CPU_SHARES),),
    )


def _batches(size: int, settings: SftConfig) -> Iterator[list[int]]:
    order: list[int] = []
    epoch = 0
    while True:
        while len(order) < settings.batch_trajectories:
            order.extend(generator("imitation", settings.seed, epoch).permutation(size))
            epoch += 1
        yield order[: settings.batch_trajectories]
        order = order[settings.batch_trajectories :]


def read_demonstrations(expert: Path) -> list[dict]:
    """Read an expert folder. Each row has `task_id`, `observations` [T + 1] and `actions` [T].

    Raises:
        UserError: the file is missing, damaged, or not from the expert stage.
    """
    path = expert / "trajectories.parquet"
    try:
        columns = ["task_id", "observations", "actions"]
        return pq.read_table(path, columns=columns, **parquet.READ).to_pylist()
    except FileNotFoundError:
        raise UserError(f"{path}: file not found; run the expert stage first") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: damaged, or not an expert file ({one_line(error)})") from None


def texts(demonstrations: list[dict]) -> Iterator[str]:
    """Yield all observations and actions."""
    for row in demonstrations:
        yield from row["observations"]
        yield from row["actions"]


def as_example(row: dict, conversation: Conversation, whole_text: bool) -> Example:
    """Convert a row of `read_demonstrations` to one token sequence.

    The loss is computed on the actions or, with `whole_text`, on all tokens except the first.
    """
    ids = conversation.opening(row["observations"][0])
    spans = []
    for action, answer in zip(row["actions"], row["observations"][1:], strict=True):
        reply = conversation.reply(action)
        spans.append((len(ids), len(ids) + len(reply)))
        ids = ids + reply + conversation.observation(answer)
    if whole_text:
        return Example(ids, [(1, len(ids))])
    # Truncate after the last action, because no action follows the last observation.
    return Example(ids[: spans[-1][1]], spans)


def examples(
    demonstrations: list[dict], conversation: Conversation, max_length: int, whole_text: bool
) -> tuple[list[Example], int]:
    """Examples with at most `max_length` tokens, and the number of longer examples.

    Demonstrations without actions are skipped and not counted.
    """
    made = [
        as_example(row, conversation, whole_text) for row in demonstrations if len(row["actions"])
    ]
    fitting = [example for example in made if len(example.token_ids) <= max_length]
    return fitting, len(made) - len(fitting)


def pretrain(
    config: ModelConfig,
    demonstrations: list[dict],
    seed: int,
    folder: Path,
    on_step: Callable[[dict, int], None] = lambda row, steps: None,
) -> list[dict]:
    """Train the tiny model in `folder` in place for one epoch; return the rows of `imitate`.

    The random stream ("pretrain", seed) selects `tiny.pretrain_trajectories` demonstrations. Those
    with more than `tiny.max_positions` tokens are skipped. `on_step` is called after each step,
    with the step's row and the total number of steps.
    """
    policy = load_policy(config.model_copy(update={"adapt": "full"}), folder)
    order = generator("pretrain", seed).permutation(len(demonstrations))
    chosen = [demonstrations[i] for i in order[: config.tiny.pretrain_trajectories]]
    train, _ = examples(chosen, policy.conversation, config.tiny.max_positions, whole_text=True)
    settings = _PRETRAINING.model_copy(update={"seed": seed})
    steps = -(-len(train) // settings.batch_trajectories)
    optimisers = sft_optimisers(policy, settings)
    rows = imitate(policy, optimisers, train, [], settings, on_step=lambda row: on_step(row, steps))
    policy.save_adapter(folder)
    return rows
