"""Measures whether the update of a single sample would reduce the cross-entropy to the labels.

At selected steps of a run, we sample a batch and compute the gradient of log p of each sample. The
oracle's direction is the negative gradient of the cross-entropy to the labels. `projection` is the
component of the sample's gradient in this direction. If the projection is positive, raising the
sample's log-prob reduces the cross-entropy. (The original uses the opposite sign.)
`update_projection` is the advantage times the projection, for a policy gradient update.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from hgrpo.formulas.batch import Rollout, Seen
from hgrpo.formulas.dg import delight
from hgrpo.sandbox.policies import taken
from hgrpo.sandbox.rl import acquire
from hgrpo.sandbox.rl.diagnostics import oracle_gradient
from hgrpo.sandbox.rl.train import Trainer
from hgrpo.sandbox.trainer import Row

# Number of samples whose gradients are in memory at the same time.
_AT_ONCE = 64


def study(
    trainer: Trainer, steps: Sequence[int], advance: Callable[[int], object] = lambda step: None
) -> list[Row]:
    """Train; return one row per sample and seed, for the batch at each step in `steps`."""
    rows: list[Row] = []
    for step in sorted(set(steps)):
        while trainer.step < step:
            trainer.take_step()
            advance(1)
        rows += samples(trainer)
    return rows


def samples(trainer: Trainer) -> list[Row]:
    """Sample the batch of the trainer's next step; return one row per sample."""
    s = trainer.settings
    batch = acquire.sample(s, trainer.task, trainer.policy, trainer.weights, trainer.step)
    seen = trainer.see(batch, trainer.weights)
    columns = {
        "projection": projections(trainer, batch),
        "delight": _rows(seen, delight(seen.logprobs, seen.advantages)),
        "advantage": _rows(seen, seen.advantages) / trainer.task.horizon,
        "surprisal": -_rows(seen, seen.logprobs),
        "reward": batch.rewards.flatten(1),
    }
    columns["update_projection"] = columns["advantage"] * columns["projection"]
    columns["gate"] = torch.sigmoid(columns["delight"])
    values = {name: column.tolist() for name, column in columns.items()}
    return [
        {"step": trainer.step, "seed": seed, "sample": sample}
        | {name: column[index][sample] for name, column in values.items()}
        for index, seed in enumerate(s.seeds)
        for sample in range(len(values["reward"][index]))
    ]


def projections(trainer: Trainer, batch: Rollout) -> Tensor:
    """Inner products of the gradients of log p with the oracle's direction, [S, N * K].

    The weights are repeated once per sample, so that each sample gets its own gradient.
    """
    oracle = oracle_gradient(trainer, batch)
    inputs, products = batch.inputs[acquire.VIEW], []
    for index in range(len(trainer.settings.seeds)):
        actions = batch.actions[index].flatten(0, 1)[:, None, None]
        prompts = inputs[index].repeat_interleave(batch.group_size, 0)[:, None]
        parts = []
        for begin in range(0, len(actions), _AT_ONCE):
            some = slice(begin, begin + _AT_ONCE)
            rows = trainer.weights[index].repeat(len(actions[some]), 1).requires_grad_()
            table = trainer.policy.table(rows, prompts[some], actions[some])
            (gradients,) = torch.autograd.grad(taken(table, actions[some]).sum(), rows)
            parts.append(-gradients @ oracle[index])
        products.append(torch.cat(parts))
    return torch.stack(products)


def correlations(rows: Sequence[Row]) -> list[Row]:
    """Pearson correlations of delight with each type of projection, for each step and seed."""
    lines = []
    for step, seed in dict.fromkeys((row["step"], row["seed"]) for row in rows):
        samples = [row for row in rows if (row["step"], row["seed"]) == (step, seed)]
        line: Row = {"step": step, "seed": seed}
        for name in ("projection", "update_projection"):
            pair = torch.tensor([[row["delight"], row[name]] for row in samples]).T
            line[f"corr_delight_{name}"] = float(torch.corrcoef(pair)[0, 1])
        lines.append(line)
    return lines


def _rows(seen: Seen, values: Tensor) -> Tensor:
    """Sum values over the tokens of each rollout, detached, [S, N * K]."""
    return (values * seen.rollout.mask).sum((-1, -2)).flatten(1).detach()
