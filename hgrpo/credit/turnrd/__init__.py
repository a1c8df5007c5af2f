"""TurnRD: a model that is fitted between rounds and decomposes the return over the turns.

`make` and `fit` import torch locally, because this module is also imported to read a study.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.atomic import write_json
from hgrpo.credit.base import Context, Progress
from hgrpo.credit.turnrd.settings import Settings
from hgrpo.errors import TrainingError, UserError
from hgrpo.games.streams import key

if TYPE_CHECKING:
    from hgrpo.credit.turnrd.assigner import TurnRDCredit

__all__ = ["Settings", "fit", "make"]

LOG = "train_log.json"


def make(settings: Settings, context: Context) -> "TurnRDCredit":
    """Create the assigner."""
    from hgrpo.credit.turnrd.assigner import TurnRDCredit

    return TurnRDCredit(settings, context)


def fit(
    settings: Settings,
    rounds: Sequence[Path],
    previous: Path | None,
    seed: int,
    round: int,
    out: Path,
    show: Progress,
) -> str:
    """Fit a model to the rounds so far; see `hgrpo.credit.kinds` for the arguments.

    `previous` is used only with `fit.warm_start`. `show` is called with the maximum number of
    epochs, although the fit may stop early.

    Raises:
        UserError: a round or the previous model cannot be used, or a loss is not finite.
    """
    from hgrpo.credit.replay import read_replay
    from hgrpo.credit.turnrd.fitting import fit as fit_model
    from hgrpo.credit.turnrd.model import build_model, load_model, save_model

    began = time.perf_counter()
    rows = read_replay(rounds)
    if settings.model.film and any(row.goal is None for row in rows):
        raise UserError(f"{rounds[0]}: `model.film` requires goal embeddings, but a round has none")
    width = rows[0].embeddings.shape[1]
    if settings.fit.warm_start and previous:
        model = load_model(previous, settings)
        fitted = model.encoder.project.in_features
        if fitted != width:
            raise UserError(
                f"{previous}: the model expects embeddings of width {fitted}, got {width}"
            )
    else:
        model = build_model(settings.model, width, key("turnrd", seed, round) % 2**31)
    advance = show(settings.fit.epochs + settings.fit.fresh_epochs, "epoch")

    def epoch_done(row: dict) -> None:
        advance(f"validation={row['validation_loss']:.4f}")

    try:
        log = fit_model(model, rows, settings.fit, seed, epoch_done)
    except TrainingError as error:
        raise UserError(f"{rounds[-1]}: cannot fit TurnRD: {error}") from None
    best = min(log, key=lambda row: row["validation_loss"])
    metrics = {
        "n_trajectories": len(rows),
        "rounds": sorted({row.round for row in rows}),
        "epochs_run": sum(row["phase"] != "start" for row in log),
        "best": best,
    }
    save_model(model, settings.model, width, metrics | model.measures(), out)
    record = {"rows": log, "elapsed_s": time.perf_counter() - began}
    write_json(out / LOG, record)
    correlation = best["return_corr"]
    return (
        f"turnrd {settings.model.version}: fitted to {len(rows)} trajectories, validation loss "
        f"{log[0]['validation_loss']:.4f} -> {best['validation_loss']:.4f}, correlation of "
        f"predicted and true return {'undefined' if correlation is None else f'{correlation:.2f}'}"
    )
