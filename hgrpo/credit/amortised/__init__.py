"""Counterfactuals amortised over the rounds: their values are learnt and used where none is played.

In each round, counterfactuals are played for some turns only. After the round, a linear value of
the policy's hidden state before a turn is fitted to the mean returns of all rounds' continuations.
In the next round

    credit_t = R - mean return of the continuations from before turn t   if the turn was drawn,
    credit_t = R - V(state before turn t)                                 otherwise.

V knows nothing of the turn's own action and was fitted on earlier rounds, so it is a baseline that
leaves the gradient unbiased however bad it is, if no turn is drawn. A good one lowers the
variance. If turns are drawn, their chance depends on how long the trajectory became, which makes a
small bias.

`make` and `fit` import torch when they are called, because reading a study does not need torch.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hgrpo.atomic import write_json
from hgrpo.credit.amortised.settings import Settings
from hgrpo.credit.base import Context, Progress

if TYPE_CHECKING:
    from hgrpo.credit.amortised.values import AmortisedCredit, Values
    from hgrpo.credit.replay import ReplayRow

__all__ = ["Settings", "fit", "make"]

LOG = "train_log.json"


def make(settings: Settings, context: Context) -> "AmortisedCredit":
    """Make the assigner, which plays with the context's collector and reads its policy."""
    from hgrpo.credit.amortised.values import AmortisedCredit

    return AmortisedCredit(settings, context)


def fit(
    settings: Settings,
    rounds: Sequence[Path],
    previous: Path | None,
    seed: int,
    round: int,
    out: Path,
    show: Progress,
) -> str:
    """Fit V on the rounds so far; `hgrpo.credit.kinds` explains the arguments.

    If no counterfactual was played so far, V is the mean return.

    Raises:
        UserError: a round cannot be used.
    """
    from hgrpo.credit.amortised.values import save_values
    from hgrpo.credit.replay import read_replay

    began = time.perf_counter()
    rows = read_replay(rounds)
    drawn = [row for row in rows if row.targets is not None]
    if drawn:
        values, log = _fitted(settings, drawn, seed, round, show)
    else:
        values, log = _constant(rows), []
    n_values = sum(int((~np.isnan(row.targets)).sum()) for row in drawn)
    metrics = {"n_values": n_values, "rounds": sorted({row.round for row in rows})}
    if log:
        metrics["best"] = min(log, key=lambda row: row["validation_loss"])
    save_values(values, metrics, out)
    record = {"rows": log, "elapsed_s": time.perf_counter() - began}
    write_json(out / LOG, record)
    if not log:
        return "amortised: no counterfactual so far, so the value is the mean return"
    return (
        f"amortised: {n_values} values, validation loss {log[-1]['validation_loss']:.4f} (their "
        f"mean) -> {metrics['best']['validation_loss']:.4f}"
    )


def _fitted(
    settings: Settings, rows: Sequence["ReplayRow"], seed: int, round: int, show: Progress
) -> tuple["Values", list[dict]]:
    """V with the penalty that is best on held-out tasks, and a log row for each penalty."""
    from hgrpo.credit.amortised.values import PENALTIES, losses, ridge
    from hgrpo.credit.replay import split

    advance = show(len(PENALTIES), "penalty")
    training, held_out = split(rows, settings.validation_share, seed)
    validation = held_out or training  # a lone task is used for both
    found = losses(*[points(part, round, settings.half_life) for part in (training, validation)])
    log = []
    for index, (penalty, loss) in enumerate(zip(PENALTIES, found, strict=True)):
        advance(f"validation={loss:.4f}")
        # JSON has no infinity; null stands for the penalty that leaves only the mean.
        shown = penalty if np.isfinite(penalty) else None
        log.append({"epoch": index, "penalty": shown, "validation_loss": loss})
    best = PENALTIES[int(np.argmin(found))]
    return ridge(*points(rows, round, settings.half_life), best), log


def _constant(rows: Sequence["ReplayRow"]) -> "Values":
    from hgrpo.credit.amortised.values import Values

    nothing = np.zeros(rows[0].embeddings.shape[1])
    return Values(float(np.mean([row.env_return for row in rows])), nothing, nothing)


def points(
    rows: Sequence["ReplayRow"], newest: int, half_life: float | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States [N, D], values [N] and weights [N] of the turns with a counterfactual.

    The value of a turn is the return less its verdict. A weight halves with every `half_life`
    rounds before the round `newest`.
    """
    states, values, weights = [], [], []
    for row in rows:
        drawn = ~np.isnan(row.targets)
        states.append(row.embeddings[drawn].astype(np.float64))
        values.append(row.env_return - row.targets[drawn])
        age = 0.0 if half_life is None else (newest - row.round) / half_life
        weights.append(np.full(int(drawn.sum()), 2.0**-age))
    return np.concatenate(states), np.concatenate(values), np.concatenate(weights)
