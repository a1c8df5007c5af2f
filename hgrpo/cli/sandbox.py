"""Run a piece of the sandbox of update rules: small tasks in which the gradient can be watched.

Examples:
  python -m hgrpo.cli.sandbox rl --help
  python -m hgrpo.cli.sandbox rl --task token_reversal --method DG --num_steps 300
"""

import argparse
import importlib
from collections.abc import Sequence

from hgrpo.command import OneLineParser, run
from hgrpo.sandbox.command_line import parse

# Name on the command line -> the module with `HELP`, `add_arguments` and `run`.
PIECES = {
    "rl": "hgrpo.sandbox.rl.command",
    "rl_oracle": "hgrpo.sandbox.rl.oracle_command",
    "opd": "hgrpo.sandbox.opd.command",
    "vpo": "hgrpo.sandbox.vpo.command",
    "pedagogy": "hgrpo.sandbox.pedagogy.command",
}


def main(words: Sequence[str] | None = None) -> None:
    """Parse the words, and run the piece that they name."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = OneLineParser("python -m hgrpo.cli.sandbox", description=__doc__, formatter_class=raw)
    pieces = parser.add_subparsers(dest="piece", required=True, metavar="PIECE")
    modules = {name: importlib.import_module(module) for name, module in PIECES.items()}
    for name, module in modules.items():
        piece = pieces.add_parser(
            name,
            help=module.HELP.splitlines()[0],
            description=module.HELP,
            formatter_class=raw,
            allow_abbrev=False,
        )
        module.add_arguments(piece)
    args = parse(parser, words)
    modules[args.piece].run(args)


if __name__ == "__main__":
    run(main, interrupted="nothing was written, because rows are written when all steps are done")
