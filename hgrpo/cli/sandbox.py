"""Run a piece of the sandbox of update rules: small tasks in which the gradient can be watched.

Pieces: rl, rl_oracle, opd, vpo, pedagogy. A command trains one arm; `snakemake sandbox_all` runs
the studies of configs/sandbox.

Examples:
  python -m hgrpo.cli.sandbox rl --help
  python -m hgrpo.cli.sandbox rl --task token_reversal --method DG --num_steps 300
"""

import sys
from collections.abc import Sequence

from hgrpo.command import run
from hgrpo.errors import UserError, did_you_mean
from hgrpo.sandbox import single_runs
from hgrpo.sandbox.rl import oracle_command


def main(words: Sequence[str] | None = None) -> None:
    """Run the piece of the first word; a second word `train` changes nothing.

    Raises:
        UserError: there is no such piece, or a flag is wrong.
    """
    piece, *rest = (sys.argv[1:] if words is None else words) or ["--help"]
    if piece in ("-h", "--help"):
        print(__doc__)
        return
    if piece == "rl_oracle":
        oracle_command.run(rest)
    elif piece in single_runs.COMMANDS:
        single_runs.run(piece, rest[rest[:1] == ["train"] :])
    else:
        raise UserError(f"{piece}: no such piece{did_you_mean(piece, single_runs.COMMANDS)}")


if __name__ == "__main__":
    run(main, interrupted="nothing was written, because rows are written when all steps are done")
