"""The command `rl`: flags, runs and the file of rows."""

import argparse
from pathlib import Path
from typing import Any

from tqdm import tqdm

from hgrpo.config.read import read_value
from hgrpo.errors import UserError
from hgrpo.sandbox import command_line as cli
from hgrpo.sandbox.rl.settings import BANDITS, RULES, RlSettings

HELP = """\
Train one update rule on a small task, and write its log as CSV.

Flags, defaults and columns are those of the original; booleans are `true` or `false`. Each rule
reads only its own flags among the last group. Degenerate runs, such as a ratio rule on fresh
batches, are noted; with `--allow_degenerate false` they are refused.

Rules: {rules}

Examples:
  python -m hgrpo.cli.sandbox rl --task token_reversal --method TPO --batch_size 96 \\
      --group_size 8 --inner_epochs 4 --num_steps 300 --num_seeds 3 --output tpo.csv
  python -m hgrpo.cli.sandbox rl --task token_reversal --method FreshDG --delay 4 \\
      --replay_capacity 32 --output fresh.csv
  python -m hgrpo.cli.sandbox rl --data mnist.npz --sweep --output sweep.csv
""".format(rules=", ".join(RULES))
_RULE_FLAGS = {
    "eta": "DG and relatives: temperature of the gate; R2VPO: penalty; PMDMean: temperature",
    "tpo_eta": "TPO and relatives: temperature of the target",
    "grpo_beta": "GRPO, DrGRPO, GRPOToken: weight of the penalty to the old policy",
    "iw_cap": "PG, TrajPG, TEMPO, MaxRL: importance weights are cut at this",
    "clip_low": "clip below 1 minus this; GRPO and relatives: on both sides",
    "clip_high": "ASPO, DAPO: clip above 1 plus this",
    "kondo_keep": "Kondo: expected share of samples that pass",
    "uncertainty_scale": "UncertaintyDG, RewardVarianceDG: how much deviation counts",
    "uncertainty_threshold": "FilteredDG: no gradient above this deviation",
    "distill_alpha": "SelfDistillDG, SCOPELite: weight of the cross-entropy",
    "guard": "DGEntropyGuard: how much less a sure success weighs",
}
_SWEEP_METHODS = ("REINFORCE", "PG", "ASPO", "TrajPG", "DG", "Kondo")
_SWEEP_DELAYS = (0, 1, 3, 10, 30, 100)
# The original's columns that come first.
_FIRST = ("step", "loss", "seed", "method", "delay", "test_error", "entropy", "reward")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of the command."""
    cli.add_fields(parser, RlSettings, {"allow_degenerate": True}, skip=("rule", "seeds"))
    cli.add_run_flags(parser, seeds=5)
    cli.add_rule_flags(parser, RULES, _RULE_FLAGS).add_argument(
        "--rule",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        help="settings of the rule that have no flag of their own, such as norm=mean of GRPO",
    )
    parser.add_argument(
        "--sweep",
        nargs="?",
        const=True,
        default=False,
        type=cli.truth,
        help=f"run {', '.join(_SWEEP_METHODS)} with delays {', '.join(map(str, _SWEEP_DELAYS))}, "
        "whatever --method and --delay say. The rows are written when all have run; `snakemake "
        "sandbox_delay` is the same sweep with ten seeds, and keeps what has finished",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("results.csv"),
        help="file of rows (default results.csv)",
    )


def run(args: argparse.Namespace) -> None:
    """Check every run, train them one after another, and write all rows at once."""
    runs = settings(args)
    cli.check_output("--output", args.output)
    cli.say_notes(
        line
        for each in runs
        for line in (
            *each.notes,
            *cli.unread_rule_flags(args, each.method, RULES, RlSettings),
            *unread(each),
        )
    )
    cli.prepare_torch(args.device)

    from hgrpo.sandbox.rl.tasks.task import make_task
    from hgrpo.sandbox.rl.train import Trainer

    rows: list[dict[str, Any]] = []
    task = make_task(runs[0])
    total = sum(each.num_steps for each in runs)
    with tqdm(total=total, unit="step", disable=not args.verbose) as bar:
        for each in runs:
            bar.set_description(f"{each.method}, delay {each.delay}")
            rows += Trainer(each, task).run(bar.update)
    cli.write_rows(rows, args.output, _FIRST)
    if args.verbose:
        cli.say_written(args.output, rows, rows[-len(runs[-1].seeds) :], "test_error")


def settings(args: argparse.Namespace) -> list[RlSettings]:
    """The settings of every run that the flags ask for."""
    # A sweep has methods of its own, but a wrong name is refused all the same.
    if not args.sweep or args.method not in RULES:
        return [_settings(args, args.method, args.delay)]
    return [_settings(args, m, delay) for delay in _SWEEP_DELAYS for m in _SWEEP_METHODS]


def _settings(args: argparse.Namespace, method: str, delay: int) -> RlSettings:
    rule, assigned = RULES.get(method), dict(_assigned(word) for word in args.rule)
    flags = cli.chosen_rule(args, rule)
    for key in flags.keys() & assigned:
        raise UserError(f"--rule {key}: {cli.flag_names(rule)[key]} gives it already")
    own = flags | assigned
    changes = {"method": method, "delay": delay, "seeds": cli.chosen_seeds(args), "rule": own}
    typed = cli.flag_names(rule) | {key: f"--rule {key}" for key in assigned}
    return cli.checked(RlSettings, cli.chosen_fields(args, RlSettings) | changes, "rl", typed)


def _assigned(word: str) -> tuple[str, object]:
    """Key and value of `KEY=VALUE`, read as in a YAML file."""
    key, equals, value = word.partition("=")
    if not equals:
        raise UserError(f"--rule: KEY=VALUE was expected, not {word!r}")
    return key, read_value(value, f"--rule {key}")


def unread(run: RlSettings) -> list[str]:
    """Return a line for each setting that was changed although this run does not read it."""
    task, rule = run.task, run.rule
    sequences, text, replays = task not in BANDITS, task == "lm_bandit", run.replay_capacity > 0
    return cli.unread_fields(
        run,
        {
            f"task {task}": {
                "hidden": task == "mnist",
                "score_len": task == "masked_reversal",
                "model_name": text,
                "context_len": text,
                **dict.fromkeys(("vocab_size", "seq_len", "binary_reward"), sequences),
                **dict.fromkeys(("d_model", "nhead", "num_layers"), sequences or text),
            },
            run.method: {
                "baseline": not rule.grouped,
                "group_size": run.samples_groups or rule.candidates,
                "grouped": not (rule.grouped or rule.candidates),
            },
            "a run without replay": {"replay_priority": replays, "replay_age_decay": replays},
            f"replay by {run.replay_priority}": {
                "replay_age_decay": not replays or run.replay_priority == "fresh_delight",
            },
        },
    )
