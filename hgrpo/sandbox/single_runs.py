"""The sandbox's training commands, one per piece. Each setting of a run has a flag."""

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


class RunOptions(cli.Options):
    """Options of a single run in addition to its settings."""

    method: str = Field(description="name of the update rule")
    rule: dict[str, str] = Field(
        default_factory=dict, description="the rule's settings, as KEY=VALUE"
    )
    output: Path = Field(description="CSV file to write")


@dataclass(frozen=True)
class Command:
    """A piece's command.

    Attributes:
        text: description in the help text.
        first: leading columns of the output.
        defaults: default values of flags, if they are not the defaults of the settings.
        headline: column that is printed at the end of a run.
    """

    text: str
    first: str
    defaults: Mapping[str, Any]
    headline: str = "test_error"


COMMANDS = {
    "rl": Command(
        "Train with one update rule on a small task, and write the log as CSV.",
        "step loss seed method delay test_error entropy reward",
        {"method": "DG", "output": "results.csv", "num_seeds": 5},
    ),
    "opd": Command(
        "Train with one loss against an analytic teacher, and write the log as CSV.",
        "step phase loss seed method task",
        {"method": "OPDReverseKL", "output": "opd_results.csv"},
    ),
    "vpo": Command(
        "Train a policy that answers in sets, for two-part rewards, and write the log as CSV.",
        "step loss reward gold_set_reward adv_abs_mean ratio_mean",
        {"method": "VPOGRPO", "output": "vpo_results.csv"},
        headline="set_score",
    ),
    "pedagogy": Command(
        "Train a student and a teacher that observes the answer, and write the log as CSV.",
        "step seed method task test_error reward entropy",
        {"method": "PedagogicalRL", "output": "pedagogy_results.csv"},
    ),
}


def run(piece: str, words: Sequence[str]) -> None:
    """Check and train the run, then write all rows.

    Raises:
        UserError: a flag, a value or a combination of settings is invalid, or training fails.
    """
    command = COMMANDS[piece]
    settings, options = read_run(piece, words)
    cli.check_output(options.output)
    cli.print_notes(settings.notes)
    cli.prepare_torch(options.device)
    # Import the trainer before the progress bar appears, because Ctrl-C may fail during an import.
    trainer = PIECES[piece].trainer
    with tqdm(total=settings.num_steps, unit="step", disable=not options.verbose) as bar:
        rows = trainer(settings).run(bar.update)
    cli.write_rows(rows, options.output, command.first.split())
    if options.verbose:
        last = [row[command.headline] for row in rows[-len(options.seeds) :]]
        mean = sum(last) / len(last)
        print(f"{options.output}: {len(rows)} rows; last {command.headline} {mean:.4f}")


def read_run(piece: str, words: Sequence[str]) -> tuple[ArmSettings, RunOptions]:
    """Parse the settings of the run, and the options.

    Raises:
        UserError: a flag, a value or a combination of settings is invalid.
    """
    model, flags = PIECES[piece].model, _flags(piece, words)
    options = validate(RunOptions, cli.of_model(RunOptions, flags), piece)
    fields = cli.of_model(model, flags) | {"seeds": options.seeds}
    phase = {"method": options.method, "rule": _rule(piece, flags, fields, options)}
    fields |= {"phases": [phase]} if "phases" in model.model_fields else phase
    return validate(model, fields, piece), options


def _flags(piece: str, words: Sequence[str]) -> dict[str, Any]:
    command, rules = COMMANDS[piece], kinds.of_piece(piece)
    texts: dict[str, str] = {}
    for name, rule in rules.items():
        for key, flag in flags_of(rule).items():
            meaning = rule.model_fields[key].description
            texts[flag] = f"{name}, {texts[flag]}" if flag in texts else f"{name}: {meaning}"
    fields = {flag: (str | None, Field(None, description=text)) for flag, text in texts.items()}
    models = [create_model("OldFlags", **fields), PIECES[piece].model, RunOptions]
    text = f"{command.text}\n\nRules: {', '.join(rules)}"
    defaults = {"allow_degenerate": True, **command.defaults}
    return cli.read_flags(piece, words, models, text, defaults, skip=("seeds", "phases"))


def _rule(
    piece: str, flags: Mapping[str, Any], fields: Mapping[str, Any], options: RunOptions
) -> dict[str, Any]:
    """The rule's settings; empty for an unknown rule, because `RuleSettings` reports the error."""
    rules, method = kinds.of_piece(piece), options.method
    if method not in rules:
        return {}
    keys = {flag: key for key, flag in flags_of(rules[method]).items()}
    known = {flag for rule in rules.values() for flag in flags_of(rule).values()}
    for flag in (known & {*flags}) - {*keys} - {*fields}:
        raise UserError(f"--{flag}: not a setting of {method}")
    assigned = {key: read_value(value, f"--rule {key}") for key, value in options.rule.items()}
    return {keys[flag]: flags[flag] for flag in keys if flag in flags} | assigned
