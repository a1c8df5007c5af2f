"""Argument parser and options shared by the commands."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from hgrpo.command import OneLineParser
from hgrpo.errors import UserError
from hgrpo.games.user_path import user_text

if TYPE_CHECKING:
    from hgrpo.study.study import Study


def read_config(value: str) -> dict:
    """Parse JSON text, or read a JSON or YAML file; UserError if it is not a mapping."""
    text, name = value, "--config"
    if not value.lstrip().startswith("{"):
        path = Path(value)
        if not path.is_file():
            raise UserError(f"--config: no such file: {value}")
        text, name = user_text(path), value
    try:
        loaded = json.loads(text) if text.lstrip().startswith("{") else yaml.safe_load(text)
    except (json.JSONDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{name}: neither JSON nor YAML ({error})") from None
    if not isinstance(loaded, dict):
        raise UserError(f"{name}: expected a mapping, not {type(loaded).__name__}")
    return loaded


def command_parser(docstring: str) -> argparse.ArgumentParser:
    """A parser with the docstring as help text; raises UserError instead of exiting."""
    return OneLineParser(
        description=docstring, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def add_settings(parser: argparse.ArgumentParser, help: str = "any key of a study") -> None:
    """Add positional arguments KEY=VALUE, which override keys of a study."""
    # Without a default, argparse would list KEY=VALUE as required if another argument is missing.
    parser.add_argument("settings", nargs="*", default=[], metavar="KEY=VALUE", help=help)


def add_profile(parser: argparse.ArgumentParser, help: str) -> None:
    """Add the option --profile, the folder of a Snakemake profile."""
    parser.add_argument("--profile", type=Path, default=Path("profiles/laptop"), help=help)


def named_study(words: Sequence[str]) -> "Study":
    """Load a study from arguments KEY=VALUE (default: study=bakeoff), and apply overrides.

    Raises:
        UserError: there is no such study, or a key or value is invalid.
    """
    # Imported here because stages import this module, but do not need to load a study.
    from hgrpo.study.overrides import OF_THE_RUN, read_assignments
    from hgrpo.study.study import load_study

    config = {"study": "bakeoff"} | read_assignments(words)
    overrides = {key: value for key, value in config.items() if key not in OF_THE_RUN}
    return load_study(Path(f"configs/studies/{config['study']}.yaml"), overrides)
