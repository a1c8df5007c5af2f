"""Fits TurnRD on the replay."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from hgrpo.credit.turnrd import losses
from hgrpo.credit.turnrd.batch import pad
from hgrpo.credit.turnrd.diagnostics import (
    alpha_diagnostics,
    mean_correlation,
    pooled_correlation,
)
from hgrpo.credit.turnrd.model import Decomposition, TurnBatch, TurnRDV1, TurnRDV2
from hgrpo.credit.turnrd.replay import ReplayRow
from hgrpo.credit.turnrd.settings import FitSettings
from hgrpo.streams import generator, key


class NotFiniteError(ValueError):
    """A loss is infinite or no number, so there is nothing to go on from."""


@dataclass(frozen=True)
class Targets:
    """What the losses compare with, padded to [B, T] where it is of turns.

    Attributes:
        returns: float32 [B].
        values: float32 [B, T], what V_t is to be.
        supervision: float32 [B, T], from `supervision_target`.
        drawn: bool [B, T], turns that a counterfactual was played from.
    """

    returns: Tensor
    values: Tensor
    supervision: Tensor
    drawn: Tensor


def split(
    rows: Sequence[ReplayRow], share: float, seed: int
) -> tuple[list[ReplayRow], list[ReplayRow]]:
    """Training and validation rows, whole tasks on either side.

    A task is held out if a hash of seed and task falls below `share`. Where a task goes is settled
    in the first round that has it and by nothing that comes later, so a fit that goes on from the
    model of an earlier one validates on tasks which that model never saw. A lone task trains; as
    soon as there are two, at least one is on either side.

    Args:
        rows: of the rounds so far, from the first.
        share: of the tasks to hold out, in expectation.
        seed: of the run, the same for every fit of it.
    """
    first: dict[str, int] = {}
    for row in rows:
        first[row.task_id] = min(row.round, first.get(row.task_id, row.round))
    held: set[str] = set()
    seen = 0
    for number in sorted(set(first.values())):
        places = {
            task: key("turnrd-held-out", seed, task) / 2**64
            for task, begun in first.items()
            if begun == number
        }
        seen += len(places)
        held |= {task for task, place in places.items() if place < share}
        # Only a round's own new tasks may be moved over: the others have been used already.
        if len(held) == seen:
            held.remove(max(places, key=places.__getitem__))
        elif not held and seen > 1:
            held.add(min(places, key=places.__getitem__))
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
            return np.full(length, row.env_return / length)
        case _:
            return settings.discount ** np.arange(length - 1, -1, -1) * row.env_return


def drawn_turns(row: ReplayRow) -> np.ndarray:
    """Turns that a counterfactual was played from, bool [T]."""
    if row.targets is None:
        return np.zeros(len(row.progress), bool)
    return ~np.isnan(row.targets)


def supervision_target(row: ReplayRow) -> np.ndarray:
    """Positive verdicts as a distribution over the drawn turns, [T]; all 0 where there is none.

    The zeros are the gate. Verdicts are of the drawn turns alone and say nothing of the others, so
    a trajectory teaches how alpha is shared out among its drawn turns: it takes two of them, and
    praise for one.
    """
    drawn = drawn_turns(row)
    if drawn.sum() < 2:
        return np.zeros(len(drawn))
    positive = np.clip(np.nan_to_num(row.targets), 0, None)
    total = positive.sum()
    return positive / total if total > 1e-9 else np.zeros(len(positive))


def make_batch(rows: Sequence[ReplayRow], settings: FitSettings) -> tuple[TurnBatch, Targets]:
    """Padded inputs and targets of some trajectories; goals where all of them have one."""
    goals = [row.goal for row in rows]
    known = None if any(goal is None for goal in goals) else goals
    batch = pad([row.embeddings for row in rows], known)
    values, supervision = np.zeros((2, *batch.mask.shape), np.float32)
    drawn = np.zeros(batch.mask.shape, bool)
    for index, row in enumerate(rows):
        length = len(row.progress)
        values[index, :length] = value_targets(row, settings)
        supervision[index, :length] = supervision_target(row)
        drawn[index, :length] = drawn_turns(row)
    returns = torch.tensor([row.env_return for row in rows], dtype=torch.float32)
    return batch, Targets(
        returns, torch.from_numpy(values), torch.from_numpy(supervision), torch.from_numpy(drawn)
    )


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
            lambda: losses.supervision_loss(said.alpha, targets.supervision, targets.drawn),
        ),
    }
    return parts | {name: w * part() for name, (w, part) in weighted.items() if w}


def fit(
    model: TurnRDV1 | TurnRDV2,
    rows: Sequence[ReplayRow],
    settings: FitSettings,
    seed: int,
    on_epoch: Callable[[dict], None] = lambda row: None,
) -> list[dict]:
    """Move `model` to the weights of the least validation loss, its own at the start among them.

    Fresh epochs go on from the best weights of the replay.

    Args:
        model: changed in place.
        rows: the replay of the run so far. A lone task is trained and validated on.
        settings: of the fit.
        seed: of the run; every fit of it holds the same tasks out.
        on_epoch: called with each epoch's row of the log.

    Returns:
        The log: a row of the weights at the start (epoch -1, phase "start", without losses of
        training), then one row an epoch.

    Raises:
        NotFiniteError: a loss of training, or the loss at the start, is not finite.
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
        raise NotFiniteError("the loss of the weights at the start is not finite")
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
    """Factor of the learning rate: 1, or a linear warm-up and then half a cosine to 0."""
    if settings.schedule == "constant":
        return 1.0
    if step < settings.warmup_steps:
        return (step + 1) / settings.warmup_steps
    done = (step - settings.warmup_steps) / max(1, steps - settings.warmup_steps)
    return 0.5 * (1 + np.cos(np.pi * min(1.0, done)))


def _epoch(
    model: TurnRDV1 | TurnRDV2,
    rows: Sequence[ReplayRow],
    settings: FitSettings,
    optimiser: AdamW,
    schedule: LRScheduler,
) -> dict[str, float]:
    """Train once on the rows in their order; means over the rows of the loss and of its parts."""
    model.train()
    sums: dict[str, float] = {}
    for start in range(0, len(rows), settings.batch):
        part = rows[start : start + settings.batch]
        batch, targets = make_batch(part, settings)
        parts = loss_parts(model(batch), batch, targets, settings)
        loss = sum(parts.values())
        if not torch.isfinite(loss):
            raise NotFiniteError("the loss is not finite; is the learning rate too high?")
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
    model: TurnRDV1 | TurnRDV2, rows: Sequence[ReplayRow], settings: FitSettings
) -> dict[str, float | None]:
    """Losses and diagnostics without dropout, each trajectory counted once.

    Returns:
        `validation_` losses; those of `alpha_diagnostics`; return_corr, Pearson, of the predicted
        with the true return; alpha_cf_corr, `pooled_correlation` of alpha among the drawn turns
        with the target there, over the trajectories that teach, of which supervised_share is the
        share. A correlation that is not defined is None.
    """
    model.eval()
    sums: dict[str, float] = {}
    predicted, alphas, taught = [], [], []
    for start in range(0, len(rows), settings.batch):
        part = rows[start : start + settings.batch]
        batch, targets = make_batch(part, settings)
        said = model(batch)
        for name, value in loss_parts(said, batch, targets, settings).items():
            sums[name] = sums.get(name, 0.0) + float(value) * len(part)
        predicted += said.returns.tolist()
        for index, row in enumerate(part):
            alpha = said.alpha[index, : len(row.progress)].double().numpy()
            alphas.append((alpha, row.progress))
            target, drawn = supervision_target(row), drawn_turns(row)
            if target.any():
                share = alpha[drawn] / max(alpha[drawn].sum(), np.finfo(np.float32).tiny)
                taught.append((share, target[drawn]))
    means = {f"validation_{name}": total / len(rows) for name, total in sums.items()}
    found = {"validation_loss": sum(means.values())} | means | alpha_diagnostics(alphas)
    returns = np.array([row.env_return for row in rows])
    found["return_corr"] = mean_correlation([(np.array(predicted), returns)])
    found["alpha_cf_corr"] = pooled_correlation(taught)
    found["supervised_share"] = len(taught) / len(rows)
    return found
