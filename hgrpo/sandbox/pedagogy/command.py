"""The command `pedagogy`: flags, one run, the file of rows."""

import argparse

from hgrpo.sandbox.pedagogy.settings import RULES, PedagogySettings
from hgrpo.sandbox.run_command import add_run_arguments, run_settings, train

HELP = """\
Train a student, and a teacher that sees the answer, and write their log as CSV.

Flags, defaults and columns are those of the original; booleans are `true` or `false`. Each rule
reads only its own flags among the last group. An evaluation takes every input once.

Rules: {rules}

Examples:
  python -m hgrpo.cli.sandbox pedagogy --method PedagogicalRL --batch_size 96 --group_size 8 \\
      --num_steps 300 --eval_every 20 --num_seeds 3
  python -m hgrpo.cli.sandbox pedagogy --reward_form additive --penalty mean --imitation plain
  python -m hgrpo.cli.sandbox pedagogy --method StudentGRPO --content_vocab_size 11 --answer_len 2
""".format(rules=", ".join(RULES))
_RULE_FLAGS = {
    "clip_epsilon": "the ratio is clipped to 1 plus and minus this",
    "learnability_lambda": "PedagogicalRL, TeacherRL: weight of the penalty",
    "spike_beta": "PedagogicalRL: sharpness of the soft maximum",
    "gate_kappa": "PedagogicalRL: steepness of the student's gate",
    "gate_gamma": "PedagogicalRL: log-prob at which it is a half",
    "reward_form": "PedagogicalRL: success times exp(-lambda penalty), or less lambda penalty",
    "penalty": "PedagogicalRL: soft maximum or mean of the student's gaps, or its mean surprisal",
    "imitation": "PedagogicalRL: with the gate or without",
    "imitated": "PedagogicalRL, TeacherRL: rollouts that are imitated",
}
# Columns that come first.
_FIRST = ("step", "seed", "method", "task", "test_error", "reward", "entropy")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of the command."""
    add_run_arguments(parser, PedagogySettings, _RULE_FLAGS, "pedagogy_results.csv")


def run(args: argparse.Namespace) -> None:
    """Check the run, train it, and write all its rows at once."""
    settings = run_settings(args, PedagogySettings, "pedagogy")
    teaches = settings.rule.teaches
    readers = {settings.method: {"teacher_steps": teaches, "teacher_lr": teaches}}
    train(args, settings, _trainer, _FIRST, "test_error", readers)


def _trainer() -> type:
    from hgrpo.sandbox.pedagogy.train import Trainer

    return Trainer
