"""Send a study's training logs to TensorBoard or Weights & Biases.

The command sends the steps that results/<study> holds, and changes nothing there. With --follow it
goes on until every run is done. Step numbers continue from one round of a run to the next.
Weights & Biases reads its own environment variables: WANDB_API_KEY logs in, and with
WANDB_MODE=offline it only writes to a folder.

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
    """Parse the arguments and send the logs."""
    parser = command_parser(__doc__)
    parser.add_argument("results", type=Path, help="folder of the study, results/<study>")
    parser.add_argument("--tensorboard", type=Path, metavar="FOLDER", help="write event files here")
    parser.add_argument("--wandb", metavar="PROJECT", help="send to this project")
    parser.add_argument(
        "--follow",
        type=float,
        metavar="SECONDS",
        help="check for new steps at this interval until every run is done",
    )
    args = parser.parse_args()
    if args.tensorboard is None and args.wandb is None:
        raise UserError("give --tensorboard FOLDER, --wandb PROJECT, or both")
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
