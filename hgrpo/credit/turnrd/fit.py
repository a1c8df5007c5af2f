"""Fits TurnRD on the replay."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from hgrpo.credit.turnrd import losses
from hgrpo.credit.turnrd.batch import pad
from hgrpo.credit.turnrd.diagnostics import alpha_diagnostics, mean_correlation
from hgrpo.credit.turnrd.model import Decomposition, TurnBatch, TurnRDV1, TurnRDV2
from hgrpo.credit.turnrd.replay import ReplayRow
from hgrpo.credit.turnrd.settings import FitSettings
from hgrpo.streams import generator


@dataclass(frozen=True)
class Targets:
    """What the losses compare with; [B] or padded [B, T], float32."""

    returns: Tensor
    values: Tensor
    supervision: Tensor


def split(rows: Sequence[ReplayRow], share: float, seed: int) -> tuple[list, list]:
    """Training and validation rows, whole tasks on either side; a lone task trains."""
    tasks = sorted({row.task_id for row in rows})
    order = generator("turnrd-split", seed).permutation(len(tasks))
    held = {tasks[i] for i in order[: min(len(tasks) - 1, max(1, round(share * len(tasks))))]}
    return (
        [row for row in rows if row.task_id not in held],
        [row for row in rows if row.task_id in held],
    )


def sampling_weights(rounds: np.ndarray, half_life: float | None) -> np.ndarray:
    """Probability of drawing each trajectory: halved for each `half_life` rounds of age."""
    if half_life is None:
        return np.full(len(rounds), 1 / len(rounds))
    weights = 0.5 ** ((rounds.max() - rounds) / half_life)
    return weights / weights.sum()


def value_targets(row: ReplayRow, settings: FitSettings) -> np.ndarray:
    """What V_t is to be, [T], in the unit of the return.

    `progress`: the turn's progress. `return_share`: R / T. `discounted_return`:
    discount^(T-1-t) R.
    """
    length = len(row.progress)
    match settings.value_target:
        case "progress":
            return row.progress
        case "return_share":
            return np.full(length, row.value / length)
        case _:
            return settings.discount ** np.arange(length - 1, -1, -1) * row.value


def supervision_target(row: ReplayRow) -> np.ndarray:
    """Positive counterfactual verdicts as a distribution, [T]; all 0 where there is none.

    The zeros are the gate: a trajectory whose verdicts praise no turn teaches nothing.
    """
    if row.targets is None:
        return np.zeros(len(row.progress))
    positive = np.clip(np.nan_to_num(row.targets), 0, None)
    total = positive.sum()
    return positive / total if total > 1e-9 else np.zeros(len(positive))


def make_batch(rows: Sequence[ReplayRow], settings: FitSettings, film: bool):
    """Padded inputs and targets of some trajectories."""
    batch = pad([row.embeddings for row in rows], [row.goal for row in rows] if film else None)
    padded = np.zeros((2, *batch.mask.shape), np.float32)
    for index, row in enumerate(rows):
        padded[0, index, : len(row.progress)] = value_targets(row, settings)
        padded[1, index, : len(row.progress)] = supervision_target(row)
    returns = torch.tensor([row.value for row in rows], dtype=torch.float32)
    return batch, Targets(returns, torch.from_numpy(padded[0]), torch.from_numpy(padded[1]))


def loss_parts(
    said: Decomposition, batch: TurnBatch, targets: Targets, settings: FitSettings
) -> dict[str, Tensor]:
    """Each part of the loss, already weighted; their sum is what is minimised.

    A part whose weight is 0 is not computed.
    """
    parts = {"return": ((said.returns - targets.returns) ** 2).mean()}
    weighted: dict[str, tuple[float, Callable[[], Tensor]]] = {
        "value": (
            settings.value_weight,
            lambda: losses.value_loss(said.values, targets.values, batch.mask),
        ),
        "rank": (
            settings.rank_weight,
            lambda: losses.rank_loss(said.returns, targets.returns, settings.rank_margin),
        ),
        "prior": (settings.prior_weight, lambda: losses.prior_loss(said.alpha, batch.mask)),
        "entropy": (
            settings.entropy_weight,
            lambda: losses.entropy(said.alpha, batch.mask).mean(),
        ),
        "contrastive": (
            settings.contrastive_weight,
            lambda: losses.contrastive_loss(
                said.hidden, targets.returns, batch.mask, settings.contrastive_temperature
            ),
        ),
        "supervision": (
            settings.supervision_weight,
            lambda: losses.supervision_loss(said.alpha, targets.supervision, batch.mask),
        ),
    }
    return parts | {name: w * part() for name, (w, part) in weighted.items() if w}


def fit(
    model: TurnRDV1 | TurnRDV2,
    rows: Sequence[ReplayRow],
    settings: FitSettings,
    film: bool,
    seed: int,
    on_epoch: Callable[[dict], None] = lambda row: None,
) -> list[dict]:
    """Move `model` to the weights of its best validation loss; one log row an epoch.

    Raises:
        ValueError: a loss that is not finite.
    """
    training, held_out = split(rows, settings.validation_share, seed)
    newest = max(row.round for row in rows)
    fresh = [row for row in training if row.round > newest - settings.fresh_rounds]
    phases = [("replay", training, settings.half_life)] * settings.epochs
    if fresh:
        phases += [("fresh", fresh, None)] * settings.fresh_epochs
    steps = sum(-(-len(part) // settings.batch) for _, part, _ in phases)
    optimiser = AdamW(model.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
    schedule = LambdaLR(optimiser, lambda step: lr_factor(step, steps, settings))
    log: list[dict] = []
    best, best_state, waited = float("inf"), copy.deepcopy(model.state_dict()), 0
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for epoch, (phase, part, half_life) in enumerate(phases):
            if waited >= settings.patience and phase == "replay":
                continue
            rng = generator("turnrd-epoch", seed, epoch)
            weights = sampling_weights(np.array([row.round for row in part]), half_life)
            drawn = rng.choice(len(part), size=len(part), p=weights)
            trained = _epoch(model, [part[i] for i in drawn], settings, film, optimiser, schedule)
            row = {"epoch": epoch, "phase": phase} | trained
            row |= evaluate(model, held_out or training, settings, film)
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
    """Factor of the learning rate: 1, or a linear warm-up and then half a cosine to 0."""
    if settings.schedule == "constant":
        return 1.0
    if step < settings.warmup_steps:
        return (step + 1) / settings.warmup_steps
    done = (step - settings.warmup_steps) / max(1, steps - settings.warmup_steps)
    return 0.5 * (1 + np.cos(np.pi * min(1.0, done)))


def _epoch(model, rows, settings, film, optimiser, schedule) -> dict:
    model.train()
    sums: dict[str, float] = {}
    for start in range(0, len(rows), settings.batch):
        part = rows[start : start + settings.batch]
        batch, targets = make_batch(part, settings, film)
        parts = loss_parts(model(batch), batch, targets, settings)
        loss = sum(parts.values())
        if not torch.isfinite(loss):
            raise ValueError("the loss is not finite; is the learning rate too high?")
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.max_grad_norm)
        optimiser.step()
        schedule.step()
        for name, value in parts.items():
            sums[name] = sums.get(name, 0.0) + float(value.detach()) * len(part)
    means = {f"train_{name}": total / len(rows) for name, total in sums.items()}
    return {"train_loss": sum(means.values())} | means


@torch.no_grad()
def evaluate(
    model: TurnRDV1 | TurnRDV2, rows: Sequence[ReplayRow], settings: FitSettings, film: bool
) -> dict:
    """Losses and diagnostics without dropout, each trajectory counted once."""
    model.eval()
    sums: dict[str, float] = {}
    predicted, alphas, taught = [], [], []
    for start in range(0, len(rows), settings.batch):
        part = rows[start : start + settings.batch]
        batch, targets = make_batch(part, settings, film)
        said = model(batch)
        for name, value in loss_parts(said, batch, targets, settings).items():
            sums[name] = sums.get(name, 0.0) + float(value) * len(part)
        predicted += said.returns.tolist()
        for index, row in enumerate(part):
            alpha = said.alpha[index, : len(row.progress)].double().numpy()
            alphas.append((alpha, row.progress))
            target = supervision_target(row)
            if target.any():
                taught.append((alpha, target))
    means = {f"validation_{name}": total / len(rows) for name, total in sums.items()}
    found = {"validation_loss": sum(means.values())} | means | alpha_diagnostics(alphas)
    correlation = mean_correlation([(np.array(predicted), np.array([row.value for row in rows]))])
    found["return_corr"] = correlation
    found["alpha_cf_corr"] = mean_correlation(taught)
    found["supervised_share"] = len(taught) / len(rows)
    return found
