"""A piece's command that trains one arm: its flags, its settings and its file of rows."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from tqdm import tqdm

from hgrpo.sandbox import command_line as cli
from hgrpo.sandbox.run_settings import RunSettings

Settings = TypeVar("Settings", bound=RunSettings)


class Runs(Protocol):
    """A trainer; `run` returns its log, and calls `advance` after each step."""

    def run(self, advance: Callable[[], object]) -> list[dict[str, Any]]: ...


def add_run_arguments(
    parser: argparse.ArgumentParser, model: type[RunSettings], texts: Mapping[str, str], output: str
) -> None:
    """Declare the flags of a run: the fields of its settings, seeds, rules' settings and output.

    Args:
        texts: by flag of a rule's setting, what it says.
    """
    cli.add_fields(parser, model, {"allow_degenerate": True}, skip=("rule", "seeds"))
    cli.add_rule_flags(parser, model.RULES, texts)
    parser.add_argument(
        "--output", type=Path, default=Path(output), help=f"file of rows (default {output})"
    )
    cli.add_run_flags(parser)


def run_settings(args: argparse.Namespace, model: type[Settings], piece: str) -> Settings:
    """The settings that the flags ask for.

    Raises:
        UserError: a value is refused; the message names it.
    """
    rule = model.RULES.get(args.method)
    more = {"seeds": cli.chosen_seeds(args), "rule": cli.chosen_rule(args, rule)}
    return cli.checked(model, cli.chosen_fields(args, model) | more, piece, cli.flag_names(rule))


def train(
    args: argparse.Namespace,
    settings: RunSettings,
    trainer: Callable[[], Callable[[Any], Runs]],
    first: Sequence[str],
    headline: str,
    readers: Mapping[str, Mapping[str, bool]],
) -> None:
    """Train the arm, and write all its rows at once.

    Args:
        trainer: imports and returns the class of the piece's trainer; called after the checks.
        first: columns that lead.
        headline: the column whose last mean the closing line tells.
        readers: what reads some of the settings, see `unread_fields`.
    """
    cli.check_output("--output", args.output)
    unread = cli.unread_rule_flags(args, settings.method, settings.RULES, type(settings))
    cli.say_notes([*settings.notes, *unread, *cli.unread_fields(settings, readers)])
    cli.prepare_torch(args.device)
    with tqdm(total=settings.num_steps, unit="step", disable=not args.verbose) as bar:
        bar.set_description(settings.method)
        rows = trainer()(settings).run(bar.update)
    cli.write_rows(rows, args.output, first)
    if args.verbose:
        cli.say_written(args.output, rows, rows[-len(settings.seeds) :], headline)
