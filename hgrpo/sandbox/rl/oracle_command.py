"""The command `rl_oracle`, which compares each sample's gradient with the oracle's direction."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field
from tqdm import tqdm

from hgrpo.config.read import validate
from hgrpo.sandbox import command_line as cli
from hgrpo.sandbox.rl.settings import RlSettings

TEXT = """\
Check for each sample whether its own update would reduce the cross-entropy to the labels.

A run trains with `--method`. At each of `--train_steps`, every sample of a fresh batch gets a
row; docs/sandbox/rl.md explains the columns.

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
# These settings have no flag. `run` derives them from the other flags.
_DERIVED = ("seeds", "rule", "num_steps", "eval_every", "num_seeds")
_FIRST = ("step", "seed", "sample", "projection", "update_projection")


class OracleOptions(cli.Options):
    """Options of the command in addition to the settings of the run."""

    train_steps: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        (0, 100, 500), min_length=1, description="steps, separated by commas"
    )
    output: Path = Field(Path("samples.csv"), description="CSV file to write")


def run(words: Sequence[str]) -> None:
    """Train, write one row per sample, and print the correlations with delight."""
    models = (RlSettings, OracleOptions)
    typed = cli.read_flags("rl_oracle", words, models, TEXT, _DEFAULTS, _DERIVED)
    options = validate(OracleOptions, cli.of_model(OracleOptions, typed), "rl_oracle")
    last = max(options.train_steps)
    more = {"num_steps": max(1, last), "seeds": (options.seed,), "eval_every": last + 1}
    settings = validate(RlSettings, cli.of_model(RlSettings, typed) | more, "rl_oracle")
    cli.check_output(options.output)
    cli.print_notes(settings.notes)
    cli.prepare_torch(options.device)

    from hgrpo.sandbox.rl.oracle_study import correlations, study
    from hgrpo.sandbox.rl.train import Trainer

    with tqdm(total=last, unit="step", disable=not options.verbose) as bar:
        rows = study(Trainer(settings), options.train_steps, bar.update)
    cli.write_rows(rows, options.output, _FIRST)
    for line in correlations(rows):
        print("  ".join(f"{name} {value:.4g}" for name, value in line.items()))
