"""The command of a piece that trains one arm: its flags are the fields of a run's settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, create_model
from tqdm import tqdm

from hgrpo.config.read import read_value, validate
from hgrpo.errors import UserError
from hgrpo.formulas import kinds
from hgrpo.sandbox import command_line as cli
from hgrpo.sandbox.old_flags import flags_of
from hgrpo.sandbox.run_settings import ArmSettings
from hgrpo.sandbox.studies.pieces import PIECES

_SWEPT = ("REINFORCE", "PG", "ASPO", "TrajPG", "DG", "Kondo")
_DELAYS = (0, 1, 3, 10, 30, 100)


class RunOptions(cli.Options):
    """What a single run takes beside its settings."""

    method: str = Field(description="name of the update rule")
    rule: dict[str, str] = Field(
        default_factory=dict, description="the rule's settings, as KEY=VALUE"
    )
    output: Path = Field(description="file of rows")


class SweepOptions(RunOptions):
    """What a run of rl takes besides."""

    sweep: bool = Field(
        False,
        description=f"run {', '.join(_SWEPT)} with delays {', '.join(map(str, _DELAYS))}, whatever "
        "method and delay are given; snakemake sandbox_delay is the same with ten seeds, and keeps "
        "what has finished",
    )


@dataclass(frozen=True)
class Command:
    """A piece's command.

    Attributes:
        text: the help's description.
        first: columns that lead.
        defaults: those of the flags that differ from the settings', and of the output.
        headline: the column that the closing line shows.
    """

    text: str
    first: str
    defaults: Mapping[str, Any]
    options: type[RunOptions] = RunOptions
    headline: str = "test_error"


COMMANDS = {
    "rl": Command(
        "Train one update rule on a small task, and write its log as CSV.",
        "step loss seed method delay test_error entropy reward",
        {"method": "DG", "output": "results.csv", "num_seeds": 5},
        SweepOptions,
    ),
    "opd": Command(
        "Train one loss against an analytic teacher, and write its log as CSV.",
        "step phase loss seed method task",
        {"method": "OPDReverseKL", "output": "opd_results.csv"},
    ),
    "vpo": Command(
        "Train a policy that answers in sets, for rewards with two parts; write its log as CSV.",
        "step loss reward gold_set_reward adv_abs_mean ratio_mean",
        {"method": "VPOGRPO", "output": "vpo_results.csv"},
        headline="set_score",
    ),
    "pedagogy": Command(
        "Train a student, and a teacher that sees the answer, and write their log as CSV.",
        "step seed method task test_error reward entropy",
        {"method": "PedagogicalRL", "output": "pedagogy_results.csv"},
    ),
}


def run(piece: str, words: Sequence[str]) -> None:
    """Check every run that the words ask for, train one after another, and write all rows at once.

    Raises:
        UserError: a flag, a value or a run is refused, or training fails.
    """
    command = COMMANDS[piece]
    runs, options = read_runs(piece, words)
    cli.check_output("--output", options.output)
    cli.say_notes(note for each in runs for note in each.notes)
    cli.prepare_torch(options.device)
    # Loaded before the bar appears: an interrupted import may go on.
    trainer = PIECES[piece].trainer
    rows: list[dict[str, Any]] = []
    total = sum(each.num_steps for each in runs)
    with tqdm(total=total, unit="step", disable=not options.verbose) as bar:
        for each in runs:
            rows += trainer(each).run(bar.update)
    cli.write_rows(rows, options.output, command.first.split())
    if options.verbose:
        last = rows[-len(options.seeds) :]
        cli.say_written(options.output, rows, last, command.headline)


def read_runs(piece: str, words: Sequence[str]) -> tuple[list[ArmSettings], RunOptions]:
    """The settings of every run that the words ask for, and the options.

    Raises:
        UserError: a flag, a value or a run is refused.
    """
    command, flags = COMMANDS[piece], _flags(piece, words)
    options = validate(command.options, cli.of_model(command.options, flags), piece)
    return [_settings(piece, each, options) for each in _each(flags, options)], options


def _flags(piece: str, words: Sequence[str]) -> dict[str, Any]:
    """The values that flags give, with the command line's defaults."""
    command, rules = COMMANDS[piece], kinds.of_piece(piece)
    texts: dict[str, str] = {}
    for name, rule in rules.items():
        for key, flag in flags_of(rule).items():
            meaning = rule.model_fields[key].description
            texts[flag] = f"{name}, {texts[flag]}" if flag in texts else f"{name}: {meaning}"
    fields = {flag: (str | None, Field(None, description=text)) for flag, text in texts.items()}
    models = [create_model("OldFlags", **fields), PIECES[piece].model, command.options]
    text = f"{command.text}\n\nRules: {', '.join(rules)}"
    more = {"allow_degenerate": True, **command.defaults}
    # The original takes `--sweep` also without a value.
    pairs = zip(words, [*words[1:], ""], strict=False)
    words = [
        "--sweep=true" if word == "--sweep" and after not in ("true", "false") else word
        for word, after in pairs
    ]
    return cli.read_flags(piece, words, models, text, more, skip=("seeds", "phases"))


def _each(flags: Mapping[str, Any], options: RunOptions) -> list[dict[str, Any]]:
    # A sweep takes other methods, but a wrong name is refused all the same.
    if not getattr(options, "sweep", False) or flags["method"] not in kinds.every():
        return [dict(flags)]
    return [{**flags, "method": m, "delay": delay} for delay in _DELAYS for m in _SWEPT]


def _settings(piece: str, flags: Mapping[str, Any], options: RunOptions) -> ArmSettings:
    """The settings of one run."""
    model, method = PIECES[piece].model, flags["method"]
    fields = cli.of_model(model, flags) | {"seeds": options.seeds}
    phase = {"method": method, "rule": _rule(piece, method, flags, fields, options)}
    fields |= {"phases": [phase]} if "phases" in model.model_fields else phase
    return validate(model, fields, piece)


def _rule(
    piece: str,
    method: str,
    flags: Mapping[str, Any],
    fields: Mapping[str, Any],
    options: RunOptions,
) -> dict[str, Any]:
    """The rule's settings; an unknown rule gets none, and the settings of the run refuse it."""
    rules = kinds.of_piece(piece)
    if method not in rules:
        return {}
    read = {flag: key for key, flag in flags_of(rules[method]).items()}
    known = {flag for rule in rules.values() for flag in flags_of(rule).values()}
    for flag in (known & {*flags}) - {*read} - {*fields}:
        if not getattr(options, "sweep", False):
            raise UserError(f"--{flag}: {method} has no such setting")
    assigned = {key: read_value(value, f"--rule {key}") for key, value in options.rule.items()}
    return {read[flag]: flags[flag] for flag in read if flag in flags} | assigned
