"""Send a study's training logs to TensorBoard or Weights & Biases.

The command does not change results/<study>. With --follow, it sends new steps until all training
runs have finished. Steps are numbered consecutively across the rounds of a run. For Weights &
Biases, set the environment variable WANDB_API_KEY. To write to a local folder instead, set
WANDB_MODE=offline.

Examples:
  python -m hgrpo.cli.board results/bakeoff --tensorboard boards && tensorboard --logdir boards
  python -m hgrpo.cli.board results/bakeoff --wandb my-project --follow 30
"""

import time
from pathlib import Path

from hgrpo.cli.entry import command_parser
from hgrpo.command import run
from hgrpo.errors import UserError
from hgrpo.report.board import Board, run_plans
from hgrpo.store.entry import read_plan


def main() -> None:
    """Send the training logs to the chosen services."""
    parser = command_parser(__doc__)
    parser.add_argument("results", type=Path, help="folder of the study, results/<study>")
    parser.add_argument("--tensorboard", type=Path, metavar="FOLDER", help="folder for event files")
    parser.add_argument("--wandb", metavar="PROJECT", help="Weights & Biases project")
    parser.add_argument(
        "--follow",
        type=float,
        metavar="SECONDS",
        help="check for new steps at this interval until all runs finish",
    )
    args = parser.parse_args()
    if args.tensorboard is None and args.wandb is None:
        raise UserError("pass --tensorboard FOLDER, --wandb PROJECT, or both")
    plans = run_plans(read_plan(args.results))
    board = Board(args.results, plans, args.tensorboard, args.wandb)
    try:
        while board.send() and args.follow:
            time.sleep(args.follow)
    finally:
        sent = board.close()
    print(f"{sent} steps sent")


if __name__ == "__main__":
    run(main)
