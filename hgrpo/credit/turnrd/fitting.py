"""Fits a TurnRD model to trajectories, with early stopping on held-out tasks."""

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from hgrpo.credit.replay import ReplayRow, split
from hgrpo.credit.turnrd import losses
from hgrpo.credit.turnrd.diagnostics import alpha_diagnostics, mean_correlation, pooled_correlation
from hgrpo.credit.turnrd.losses import Targets, drawn_turns, make_batch, supervision_target
from hgrpo.credit.turnrd.model import Decomposition, TurnBatch, TurnRD
from hgrpo.credit.turnrd.settings import FitSettings
from hgrpo.errors import TrainingError
from hgrpo.games.streams import generator, key


def sampling_weights(rounds: np.ndarray, half_life: float | None) -> np.ndarray:
    """Return the probability of drawing each trajectory, [N].

    `rounds`, int [N], is the round of each trajectory. The probability halves for every `half_life`
    rounds of age. If `half_life` is None, all probabilities are equal.
    """
    if half_life is None:
        return np.full(len(rounds), 1 / len(rounds))
    weights = 0.5 ** ((rounds.max() - rounds) / half_life)
    return weights / weights.sum()


def loss_parts(
    output: Decomposition, batch: TurnBatch, targets: Targets, settings: FitSettings
) -> dict[str, Tensor]:
    """Return the weighted terms of the loss by name, without terms of weight 0."""
    parts = {"return": ((output.returns - targets.returns) ** 2).mean()}
    if w := settings.value_weight:
        parts["value"] = w * losses.value_loss(output.values, targets.values, batch.mask)
    if w := settings.rank_weight:
        parts["rank"] = w * losses.rank_loss(output.returns, targets.returns, settings.rank_margin)
    if w := settings.prior_weight:
        parts["prior"] = w * losses.prior_loss(output.alpha, batch.mask)
    if w := settings.entropy_weight:
        parts["entropy"] = w * losses.entropy(output.alpha, batch.mask).mean()
    if w := settings.contrastive_weight:
        parts["contrastive"] = w * losses.contrastive_loss(
            output.hidden, targets.returns, batch.mask, settings.contrastive_temperature
        )
    if w := settings.supervision_weight:
        parts["supervision"] = w * losses.supervision_loss(
            output.alpha, targets.supervision, targets.drawn
        )
    return parts


def fit(
    model: TurnRD,
    rows: Sequence[ReplayRow],
    settings: FitSettings,
    seed: int,
    on_epoch: Callable[[dict], None] = lambda row: None,
) -> list[dict]:
    """Train `model` in place, and restore the weights with the lowest validation loss.

    The initial weights are restored if no epoch has a lower validation loss. The final epochs
    (phase "fresh") start from the best weights so far and train only on the newest rounds.

    Args:
        rows: trajectories of the run so far. If they all have the same task, they are used both for
            training and for validation.
        seed: seed of the run, so that every fit of the run holds out the same tasks.
        on_epoch: called with the log row of each epoch.

    Returns:
        The log: one row for the initial weights (epoch -1, phase "start"), which has no training
        losses, followed by one row per epoch. Epochs skipped by early stopping have no row.

    Raises:
        TrainingError: a training loss, or the initial loss, is not finite.
    """
    training, held_out = split(rows, settings.validation_share, seed)
    validation = held_out or training
    newest = max(row.round for row in rows)
    fresh = [row for row in training if row.round > newest - settings.fresh_rounds]
    phases = [("replay", training, settings.half_life)] * settings.epochs
    if fresh:
        phases += [("fresh", fresh, None)] * settings.fresh_epochs
    steps = sum(-(-len(part) // settings.batch) for _, part, _ in phases)
    optimiser = AdamW(model.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
    schedule = LambdaLR(optimiser, lambda step: lr_factor(step, steps, settings))
    log = [{"epoch": -1, "phase": "start"} | evaluate(model, validation, settings)]
    best, best_state, waited = log[0]["validation_loss"], copy.deepcopy(model.state_dict()), 0
    if not np.isfinite(best):
        raise TrainingError("the initial loss is not finite")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(key("turnrd-dropout", seed, newest) % 2**31)
        for epoch, (phase, part, half_life) in enumerate(phases):
            if waited >= settings.patience and phase == "replay":
                continue
            if phase == "fresh" and log[-1]["phase"] != "fresh":
                model.load_state_dict(best_state)
            rng = generator("turnrd-epoch", seed, newest, epoch)
            weights = sampling_weights(np.array([row.round for row in part]), half_life)
            drawn = rng.choice(len(part), size=len(part), p=weights)
            trained = _epoch(model, [part[i] for i in drawn], settings, optimiser, schedule)
            row = {"epoch": epoch, "phase": phase} | trained
            row |= evaluate(model, validation, settings)
            log.append(row)
            on_epoch(row)
            if row["validation_loss"] < best - 1e-9:
                best, waited = row["validation_loss"], 0
                best_state = copy.deepcopy(model.state_dict())
            else:
                waited += 1
    model.load_state_dict(best_state)
    return log


def lr_factor(step: int, steps: int, settings: FitSettings) -> float:
    """Return the factor by which `settings.schedule` multiplies the learning rate at a step."""
    if settings.schedule == "constant":
        return 1.0
    if step < settings.warmup_steps:
        return (step + 1) / settings.warmup_steps
    done = (step - settings.warmup_steps) / max(1, steps - settings.warmup_steps)
    return 0.5 * (1 + np.cos(np.pi * min(1.0, done)))


def _epoch(
    model: TurnRD,
    rows: Sequence[ReplayRow],
    settings: FitSettings,
    optimiser: AdamW,
    schedule: LRScheduler,
) -> dict[str, float]:
    """Train on each row once, in order; return the means of the loss and of each loss term."""
    model.train()
    totals: Counter[str] = Counter()
    for part, _, parts in _batches(model, rows, settings):
        loss = sum(parts.values())
        if not torch.isfinite(loss):
            raise TrainingError("the loss is not finite; reduce `fit.lr`")
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.max_grad_norm)
        optimiser.step()
        schedule.step()
        for name, value in parts.items():
            totals[name] += value.item() * len(part)
    return _mean_losses("train", totals, len(rows))


def _batches(
    model: TurnRD, rows: Sequence[ReplayRow], settings: FitSettings
) -> Iterator[tuple[Sequence[ReplayRow], Decomposition, dict[str, Tensor]]]:
    for start in range(0, len(rows), settings.batch):
        part = rows[start : start + settings.batch]
        batch, targets = make_batch(part, settings)
        output = model(batch)
        yield part, output, loss_parts(output, batch, targets, settings)


def _mean_losses(phase: str, totals: Mapping[str, float], count: int) -> dict[str, float]:
    means = {f"{phase}_{name}": total / count for name, total in totals.items()}
    return {f"{phase}_loss": sum(means.values())} | means


@torch.no_grad()
def evaluate(
    model: TurnRD, rows: Sequence[ReplayRow], settings: FitSettings
) -> dict[str, float | None]:
    """Compute losses and diagnostics over all trajectories, without dropout.

    Returns:
        - validation_loss, and validation_<name> for each loss term
        - all entries of `alpha_diagnostics`
        - return_corr: Pearson correlation of predicted and true return; None if undefined
        - alpha_cf_corr: `pooled_correlation` of counterfactual targets and alpha; None if
          undefined. Alpha is rescaled to sum to 1 over the turns with continuations.
        - supervised_share: share of trajectories with a counterfactual target
    """
    model.eval()
    totals: Counter[str] = Counter()
    predicted, alphas, taught = [], [], []
    for part, output, parts in _batches(model, rows, settings):
        for name, value in parts.items():
            totals[name] += value.item() * len(part)
        predicted += output.returns.tolist()
        for index, row in enumerate(part):
            alpha = output.alpha[index, : len(row.progress)].double().numpy()
            alphas.append((alpha, row.progress))
            target, drawn = supervision_target(row), drawn_turns(row)
            if target.any():
                share = alpha[drawn] / max(alpha[drawn].sum(), np.finfo(np.float32).tiny)
                taught.append((share, target[drawn]))
    numbers = _mean_losses("validation", totals, len(rows)) | alpha_diagnostics(alphas)
    returns = np.array([row.env_return for row in rows])
    numbers["return_corr"] = mean_correlation([(np.array(predicted), returns)])
    numbers["alpha_cf_corr"] = pooled_correlation(taught)
    numbers["supervised_share"] = len(taught) / len(rows)
    return numbers
