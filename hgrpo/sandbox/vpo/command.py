"""The command `vpo`: flags, one run, the file of rows."""

import argparse

from hgrpo.sandbox.run_command import add_run_arguments, run_settings, train
from hgrpo.sandbox.vpo.settings import RULES, VpoSettings

HELP = """\
Train a policy that answers in sets, for rewards with two parts, and write its log as CSV.

Flags, defaults and columns are those of the original; booleans are `true` or `false`. Each rule
reads only its own flags among the last group. Where the original samples an evaluation, this one
adds up its exact expectation.

Rules: {rules}

Examples:
  python -m hgrpo.cli.sandbox vpo --method VPOGRPO --batch_size 128 --group_size 8 \\
      --num_candidates 3 --num_steps 500 --eval_every 20 --num_seeds 3
  python -m hgrpo.cli.sandbox vpo --set_score exact --slot_credit marginal --output exact.csv
  python -m hgrpo.cli.sandbox vpo --method ScalarGRPO --num_candidates 1 --output scalar.csv
""".format(rules=", ".join(RULES))
_RULE_FLAGS = {
    "clip_epsilon": "the ratio is clipped to 1 plus and minus this",
    "slot_credit": "MultiRLVR, VPOGRPO: a slot is credited the set's score, or what the score "
    "loses without the slot",
    "set_score": "VPOGRPO: the mean over drawn weights, or its exact integral",
    "num_weight_samples": "VPOGRPO: drawn weights of a group; the exact integral draws none",
}
# The original's columns that come first.
_FIRST = ("step", "loss", "reward", "gold_set_reward", "adv_abs_mean", "ratio_mean")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of the command."""
    add_run_arguments(parser, VpoSettings, _RULE_FLAGS, "vpo_results.csv")


def run(args: argparse.Namespace) -> None:
    """Check the run, train it, and write all its rows at once."""
    train(args, run_settings(args, VpoSettings, "vpo"), _trainer, _FIRST, "set_score", {})


def _trainer() -> type:
    from hgrpo.sandbox.vpo.train import Trainer

    return Trainer
