"""Shared functions of the commands: argument parser and options."""

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
    """The mapping in `value`: JSON text, or the path of a JSON or YAML file; else UserError."""
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
    """A parser with the docstring as help text; it raises UserError where argparse would exit."""
    return OneLineParser(
        description=docstring, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def add_settings(parser: argparse.ArgumentParser, help: str = "any key of a study") -> None:
    """Add the arguments KEY=VALUE, which override keys of a study's file."""
    # Without a default, argparse reports these arguments as required when another one is missing.
    parser.add_argument("settings", nargs="*", default=[], metavar="KEY=VALUE", help=help)


def add_profile(parser: argparse.ArgumentParser, help: str) -> None:
    """Add the option --profile, the folder of a Snakemake profile."""
    parser.add_argument("--profile", type=Path, default=Path("profiles/laptop"), help=help)


def named_study(words: Sequence[str]) -> "Study":
    """The study of arguments KEY=VALUE, by default `bakeoff`, with their overrides.

    Raises:
        UserError: there is no such study, or a key or value is invalid.
    """
    # Imported here because stage jobs import this module but read no study.
    from hgrpo.study.overrides import OF_THE_RUN, read_assignments
    from hgrpo.study.study import load_study

    config = {"study": "bakeoff"} | read_assignments(words)
    overrides = {key: value for key, value in config.items() if key not in OF_THE_RUN}
    return load_study(Path(f"configs/studies/{config['study']}.yaml"), overrides)
