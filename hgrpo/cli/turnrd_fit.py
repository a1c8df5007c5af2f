"""Fit TurnRD on the rounds played so far; the next round reads the result out as credit.

Example:
  python -m hgrpo.cli.config configs/studies/bakeoff.yaml --stage turnrd_fit --method TurnRDV2 \\
      > fit.json
  python -m hgrpo.cli.turnrd_fit --config fit.json --seed 11 --round 2 \\
      --rounds results/bakeoff/rl/TurnRDV2/seed_11/round_{1,2} \\
      --out results/bakeoff/turnrd/TurnRDV2/seed_11/round_2
"""

import time
from collections.abc import Callable
from pathlib import Path

from tqdm import tqdm

from hgrpo.atomic import atomic_folder
from hgrpo.cli.entry import arguments, read_config, run, section
from hgrpo.credit.turnrd import Settings, fit


def main() -> None:
    """Parse the arguments and fit."""
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
    with tqdm(desc="turnrd") as bar, atomic_folder(args.out) as out:

        def show(total: int, unit: str) -> Callable[[str], None]:
            bar.total, bar.unit = total, unit

            def advance(state: str) -> None:
                bar.set_postfix_str(state, refresh=False)
                bar.update()

            return advance

        said = fit(settings, args.rounds, args.previous, args.seed, args.round, out, show)
    print(f"{said}, {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    run(main)
