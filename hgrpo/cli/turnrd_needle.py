"""Does TurnRD find the turn that earned the return? A synthetic task where that is known.

Examples:
  python -m hgrpo.cli.turnrd_needle
  python -m hgrpo.cli.turnrd_needle --version v1 --trajectories 4000 --seeds 3
"""

import argparse
import json

from tqdm import tqdm

from hgrpo.cli.entry import run
from hgrpo.credit.turnrd.fit import NotFiniteError, fit
from hgrpo.credit.turnrd.model import build_model
from hgrpo.credit.turnrd.needle import WIDTH, needle_task, recovery
from hgrpo.credit.turnrd.settings import FitSettings, ModelSettings
from hgrpo.errors import UserError

_HELD_OUT = 500


def main() -> None:
    """Fit on the task and print, for each version and seed, how well the needle is found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", choices=["v1", "v2"], nargs="+", default=["v1", "v2"])
    parser.add_argument("--trajectories", type=int, default=2000, help="to fit on")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seeds", type=int, default=1, help="repetitions")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    args = parser.parse_args()
    settings = FitSettings(
        epochs=args.epochs, lr=args.lr, patience=args.epochs, half_life=None, rank_weight=0.1
    )
    for version in args.version:
        for seed in range(args.seeds):
            rows, _ = needle_task(args.trajectories, seed, "train")
            shape = ModelSettings(
                version=version, hidden=64, dropout=0.0, value_head=version == "v2"
            )
            model = build_model(shape, WIDTH, seed)
            with tqdm(total=args.epochs, desc=f"{version} seed {seed}", leave=False) as bar:
                try:
                    fit(model, rows, settings, seed, lambda row, bar=bar: bar.update())
                except NotFiniteError as error:
                    raise UserError(f"--lr {args.lr}: {error}") from None
            found = recovery(model, *needle_task(_HELD_OUT, seed, "held-out"))
            if args.json:
                print(json.dumps({"version": version, "seed": seed} | found))
            else:
                print(
                    f"{version} seed {seed}: alpha at the needle {found['alpha_at_needle']:.3f} "
                    f"(equal weights {found['uniform']:.3f}), needle has the largest alpha "
                    f"{found['argmax_accuracy']:.1%}, return r = {found['return_corr']:.3f}, "
                    f"mse {found['return_mse']:.4f}"
                )


if __name__ == "__main__":
    run(main)
