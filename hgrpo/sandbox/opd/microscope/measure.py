"""Measures how far the gradients of single batches deviate from the exact gradient."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from hgrpo.errors import TrainingError
from hgrpo.sandbox.draws import generator
from hgrpo.sandbox.nets.transformer import Transformer
from hgrpo.sandbox.opd.microscope.estimators import BEST, ESTIMATORS, Objective
from hgrpo.sandbox.opd.microscope.gradients import (
    Batches,
    can_be_listed,
    exact_gradients,
    gradients,
    sampled,
)
from hgrpo.sandbox.opd.microscope.settings import MicroscopeSettings
from hgrpo.sandbox.opd.tasks import DistillTask
from hgrpo.sandbox.policies import Policy, SequencePolicy

# If the expected gradient is estimated, the batches for the estimate are larger by this factor.
_LARGER = 8

Row = dict[str, float | int | str]


def measure(
    settings: MicroscopeSettings, advance: Callable[[], object] = lambda: None
) -> list[Row]:
    """Return one row per horizon, seed and estimator.

    `advance` is called after each combination of horizon and seed.

    Raises:
        TrainingError: a gradient is not finite.
    """
    tasks = {horizon: DistillTask(settings.at(horizon)) for horizon in settings.horizons}
    first = tasks[settings.horizons[0]]
    net = Transformer(
        first.sequences.actions,
        2 * max(settings.horizons) + 1,
        settings.d_model,
        settings.nhead,
        settings.num_layers,
    )
    rows = []
    for seed in settings.seeds:
        weights = net.init((seed,))
        numbers = generator(seed, "direction").standard_normal(weights.shape[1])
        direction = torch.as_tensor(numbers, dtype=torch.float32)
        for horizon, task in tasks.items():
            policy = SequencePolicy(net, horizon)
            head = {"horizon": horizon, "seed": seed}
            seed_rows = _one(settings, task, policy, seed, weights, direction / direction.norm())
            rows += [head | row for row in seed_rows]
            advance()
    return rows


def _one(
    settings: MicroscopeSettings,
    task: DistillTask,
    policy: Policy,
    seed: int,
    weights: Tensor,
    direction: Tensor,
) -> list[Row]:
    batches = Batches("measured", settings.num_batches, settings.batch_size)
    drawn = sampled(task, policy, seed, weights, batches)
    measured = gradients(policy, weights, drawn, tuple(ESTIMATORS))
    exact, doubt = _reference(settings, task, policy, seed, weights)
    head = {
        "batch_size": settings.batch_size,
        "num_batches": settings.num_batches,
        "reference": "listed" if can_be_listed(task) else "sampled",
    }
    rows = []
    for name, (losses, each) in measured.items():
        if not bool(each.isfinite().all()):
            where = f"horizon {task.settings.seq_len}, seed {seed}"
            raise TrainingError(f"variance_microscope, {where}: {name} is not finite")
        objective = ESTIMATORS[name].objective
        columns = original(losses, each, direction) | against(
            each, exact, objective, doubt[objective]
        )
        rows.append({"estimator": name, **head, "objective": objective, **columns})
    return rows


def _reference(
    settings: MicroscopeSettings, task: DistillTask, policy: Policy, seed: int, weights: Tensor
) -> tuple[Mapping[Objective, Tensor], Mapping[Objective, float]]:
    """The gradient [P] of each objective, and its squared standard error (0 if exact)."""
    if can_be_listed(task):
        exact = exact_gradients(task, policy, weights)
        return {name: one[0] for name, one in exact.items()}, dict.fromkeys(exact, 0.0)
    batches = Batches("reference", settings.reference_batches, settings.batch_size * _LARGER)
    drawn = sampled(task, policy, seed, weights, batches)
    sampled_gradients = gradients(policy, weights, drawn, tuple(BEST.values()))
    many = {objective: sampled_gradients[name][1] for objective, name in BEST.items()}
    return (
        {objective: each.mean(0) for objective, each in many.items()},
        {objective: scatter(each) / len(each) for objective, each in many.items()},
    )


def scatter(each: Tensor) -> float:
    """The trace of the sample covariance of gradients [C, P]."""
    return float(each.var(0).sum())


def original(losses: Tensor, each: Tensor, direction: Tensor) -> dict[str, float]:
    """Statistics of losses, projected gradients and norms, as in the original sandbox."""
    projections, norms = each @ direction, each.norm(dim=1)
    return {
        "loss_mean": float(losses.mean()),
        "projection_mean": float(projections.mean()),
        "projection_var": float(projections.var()),
        "grad_norm_mean": float(norms.mean()),
        "grad_norm_var": float(norms.var()),
        "projection_std": float(projections.std()),
        "grad_norm_std": float(norms.std()),
    }


def against(
    each: Tensor, exact: Mapping[Objective, Tensor], objective: Objective, doubt: float
) -> dict[str, float]:
    """Compare the gradients [C, P] of C batches with the exact gradient [P] of each objective.

    - relative_variance: trace of the covariance, divided by the squared norm of the exact gradient.
      It does not depend on whether a loss is the sum or the mean over tokens.
    - bias: distance of the mean gradient from the exact gradient, divided by the norm of the exact
      gradient; `bias_noise` is its expected value for an unbiased estimator.
    - cosine: cosine similarity of a batch's gradient and the exact gradient, averaged over batches.
    - cosine_of_mean: cosine similarity of the mean gradient and the exact gradient.
    - cosine_other: like cosine_of_mean, with the exact gradient of the other objective.

    Args:
        objective: the estimator's own objective.
        doubt: squared standard error of the reference gradient, 0 if it is exact.
    """
    target, mean = exact[objective], each.mean(0)
    (other,) = (gradient for name, gradient in exact.items() if name != objective)
    size, spread = float(target.norm()), scatter(each)
    return {
        "objective_norm": size,
        "relative_variance": spread / size**2,
        "cosine": float(torch.cosine_similarity(each, target.unsqueeze(0)).mean()),
        "cosine_of_mean": _cosine(mean, target),
        "cosine_other": _cosine(mean, other),
        "bias": float((mean - target).norm()) / size,
        "bias_noise": (spread / len(each) + doubt) ** 0.5 / size,
    }


def _cosine(one: Tensor, other: Tensor) -> float:
    return float(torch.cosine_similarity(one, other, dim=0))
