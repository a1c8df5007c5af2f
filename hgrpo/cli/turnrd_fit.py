"""Fit TurnRD on the rounds played so far; the next round reads the result out as credit.

Example:
  python -m hgrpo.cli.config configs/studies/bakeoff.yaml --stage turnrd_fit --method TurnRDV2 \\
      > fit.json
  python -m hgrpo.cli.turnrd_fit --config fit.json --seed 11 --round 2 \\
      --rounds results/bakeoff/rl/TurnRDV2/seed_11/round_{1,2} \\
      --out results/bakeoff/turnrd/TurnRDV2/seed_11/round_2
"""

import json
import time
from pathlib import Path

from tqdm import tqdm

from hgrpo.atomic import atomic_folder
from hgrpo.cli.entry import arguments, read_config, run, section
from hgrpo.credit.turnrd.checkpoint import load_model, save_model
from hgrpo.credit.turnrd.fit import NotFiniteError, fit
from hgrpo.credit.turnrd.model import TurnRDV1, TurnRDV2, build_model
from hgrpo.credit.turnrd.replay import read_replay
from hgrpo.credit.turnrd.settings import Settings
from hgrpo.errors import UserError
from hgrpo.streams import key


def main() -> None:
    """Read the replay, fit, write the model and its log."""
    parser = arguments(__doc__)
    parser.add_argument("--seed", type=int, required=True, help="of the run")
    parser.add_argument("--round", type=int, required=True, help="the last round of the replay")
    parser.add_argument(
        "--rounds", type=Path, nargs="+", required=True, help="folders of all rounds so far"
    )
    parser.add_argument("--previous", type=Path, help="an earlier model, for a warm start")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    args = parser.parse_args()
    began = time.perf_counter()
    settings = section(read_config(args.config), "credit", Settings)
    rows = read_replay(args.rounds)
    if settings.model.film and any(row.goal is None for row in rows):
        raise UserError(f"{args.rounds[0]}: rounds without goal embeddings; film needs them")
    width = rows[0].embeddings.shape[1]
    if settings.fit.warm_start and args.previous:
        model = _previous(args.previous, settings, width)
    else:
        model = build_model(settings.model, width, key("turnrd", args.seed, args.round) % 2**31)
    total = settings.fit.epochs + settings.fit.fresh_epochs
    with tqdm(total=total, desc="turnrd", unit="epoch") as bar:

        def show(row: dict) -> None:
            bar.set_postfix(validation=f"{row['validation_loss']:.4f}", refresh=False)
            bar.update()

        try:
            log = fit(model, rows, settings.fit, args.seed, show)
        except NotFiniteError as error:
            raise UserError(f"{args.rounds[-1]}: TurnRD cannot be fitted: {error}") from None
    best = min(log, key=lambda row: row["validation_loss"])
    metrics = {
        "n_trajectories": len(rows),
        "rounds": sorted({row.round for row in rows}),
        "epochs_run": sum(row["phase"] != "start" for row in log),
        "best": best,
    }
    if getattr(model, "query_norm", None) is not None:
        metrics["cls_query_norm"] = model.query_norm
    with atomic_folder(args.out) as out:
        save_model(model, settings.model, width, metrics, out)
        record = {"rows": log, "elapsed_s": time.perf_counter() - began}
        (out / "train_log.json").write_text(json.dumps(record, indent=1) + "\n")
    print(
        f"turnrd {settings.model.version}: {len(rows)} trajectories, validation loss "
        f"{log[0]['validation_loss']:.4f} -> {best['validation_loss']:.4f}, correlation with the "
        f"return {_shown(best['return_corr'])}, {time.perf_counter() - began:.0f} s"
    )


def _previous(folder: Path, settings: Settings, width: int) -> TurnRDV1 | TurnRDV2:
    """The model to go on from.

    Raises:
        UserError: it is missing, broken, or made for other settings or embeddings.
    """
    model = load_model(folder, settings)
    fitted = model.encoder.project.in_features
    if fitted != width:
        raise UserError(f"{folder}: a model for embeddings of width {fitted}, not {width}")
    return model


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    run(main)
