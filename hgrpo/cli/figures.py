"""Draw every figure of a study from its cached results: SVG, with the numbers as CSV beside it.

Example:
  cd results/bakeoff
  python -m hgrpo.cli.config ../../configs/studies/bakeoff.yaml --stage figures > figures.json
  python -m hgrpo.cli.figures --config figures.json --episodes report/episodes.parquet \\
      --train-logs rl/*/*/*/train_log.json --turns rl/*/*/round_1/turns.parquet \\
      --fits turnrd/*/*/*/train_log.json --out report/figures
"""

from pathlib import Path

from hgrpo.atomic import atomic_folder
from hgrpo.cli.entry import arguments, read_config, run
from hgrpo.report.draw import draw_all
from hgrpo.report.inputs import read_inputs
from hgrpo.report.logs import read_first_turns, read_fits, run_of


def main() -> None:
    """Read, compare, draw."""
    parser = arguments(__doc__)
    parser.add_argument("--episodes", type=Path, required=True, help="merged episodes.parquet")
    parser.add_argument(
        "--train-logs", type=Path, nargs="*", default=[], help="train_log.json of every round"
    )
    parser.add_argument(
        "--turns",
        type=Path,
        nargs="*",
        default=[],
        help="turns.parquet of the first round of every run, for the credit pictures",
    )
    parser.add_argument(
        "--fits", type=Path, nargs="*", default=[], help="train_log.json of every fit"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    args = parser.parse_args()
    inputs = read_inputs(read_config(args.config), args.episodes, args.train_logs, args.fits)
    # The logs of other fits have columns of their own, and no figure.
    learnt = inputs.arms.with_figure("turnrd")
    fits = read_fits([path for path in args.fits if run_of(path)[0] in learnt])
    turns = read_first_turns(args.turns)
    with atomic_folder(args.out) as folder:
        index = draw_all(inputs, turns, fits, folder)
    print(f"{len(index)} figures: {args.out}")


if __name__ == "__main__":
    run(main)
