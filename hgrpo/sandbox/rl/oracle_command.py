"""The command `rl_oracle`: single samples against the oracle."""

import argparse
from pathlib import Path

from tqdm import tqdm

from hgrpo.config.read import validate
from hgrpo.sandbox import command_line as cli
from hgrpo.sandbox.rl.command import unread
from hgrpo.sandbox.rl.settings import RlSettings

HELP = """\
Check for each sample whether its own update would lower the cross-entropy to the labels.

A run trains by `--method`. At `--train_steps` each sample of a fresh batch gets its own gradient
of log p, and `projection` is its inner product with the direction that lowers the cross-entropy to
the labels: above 0 it helps. `update_projection` is the advantage times that. The original's
projections have the opposite sign. Each row also has delight, advantage, surprisal, reward and
gate. Delight and surprisal are sums over tokens; the gate is the sigmoid of the summed delight, at
eta 1. All rows go into one CSV.

Example:
  python -m hgrpo.cli.sandbox rl_oracle --task token_reversal --train_steps 0,100,500 \\
      --output samples.csv
"""
_DEFAULTS = {
    "task": "token_reversal",
    "method": "REINFORCE",
    "batch_size": 200,
    "seq_len": 5,
    "allow_degenerate": True,
}
# Settings without a flag, because `--train_steps` decides them.
_DERIVED = ("num_steps", "eval_every")
_FIRST = ("step", "seed", "sample", "projection", "update_projection")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of the command."""
    cli.add_fields(parser, RlSettings, _DEFAULTS, skip=("rule", "seeds", *_DERIVED))
    parser.add_argument("--seed", type=int, default=0, help="seed (default 0)")
    parser.add_argument(
        "--train_steps", type=steps, default="0,100,500", help="steps, by comma (default 0,100,500)"
    )
    parser.add_argument("--output", type=Path, default=Path("samples.csv"), help="file of rows")
    cli.add_device_and_verbose(parser)


def steps(text: str) -> tuple[int, ...]:
    """Steps by comma, as a type for argparse.

    Raises:
        argparse.ArgumentTypeError: one is no number, or below 0.
    """
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"numbers by comma were expected, not {text!r}") from None
    if min(found) < 0:
        raise argparse.ArgumentTypeError(f"{min(found)} is below 0, the step before training")
    return found


def run(args: argparse.Namespace) -> None:
    """Train, write a row for each sample, and print the correlations with delight."""
    last = max(args.train_steps)
    more = {"num_steps": max(1, last), "seeds": (args.seed,), "eval_every": last + 1}
    settings = validate(RlSettings, cli.chosen_fields(args, RlSettings) | more, "rl_oracle")
    cli.check_output("--output", args.output)
    cli.say_notes([*settings.notes, *unread(settings)])
    cli.prepare_torch(args.device)

    from hgrpo.sandbox.rl.oracle_study import correlations, study
    from hgrpo.sandbox.rl.train import Trainer

    with tqdm(total=last, unit="step", disable=not args.verbose) as bar:
        rows = study(Trainer(settings), args.train_steps, bar.update)
    cli.write_rows(rows, args.output, _FIRST)
    for line in correlations(rows):
        print("  ".join(f"{name} {value:.4g}" for name, value in line.items()))
