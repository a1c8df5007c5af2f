"""Run a sandbox experiment, which trains with an update rule on a small task.

The experiments are rl, rl_oracle, opd, vpo and pedagogy. This command trains a single arm; run
`snakemake sandbox_all` for all studies in configs/sandbox.

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
    """Run the experiment given by the first argument; a second argument `train` has no effect."""
    piece, *rest = (sys.argv[1:] if words is None else words) or ["--help"]
    if piece in ("-h", "--help"):
        print(__doc__)
        return
    if piece == "rl_oracle":
        oracle_command.run(rest)
    elif piece in single_runs.COMMANDS:
        single_runs.run(piece, rest[rest[:1] == ["train"] :])
    else:
        raise UserError(f"{piece}: no such experiment{did_you_mean(piece, single_runs.COMMANDS)}")


if __name__ == "__main__":
    run(main, interrupted="no results were saved, because they are written after the last step")
