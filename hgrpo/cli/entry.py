"""Functions that several commands share: make the argument parser, and read their options."""

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
    """The mapping in `value`: a JSON object as text, or the path of a JSON or YAML file.

    Raises:
        UserError: the value is neither; the message says what is wrong.
    """
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
        raise UserError(f"{name}: a mapping was expected, not {type(loaded).__name__}")
    return loaded


def command_parser(docstring: str) -> argparse.ArgumentParser:
    """A parser that shows the command's docstring as its help text.

    It raises UserError where argparse would exit, so parse within `hgrpo.command.run`.
    """
    return OneLineParser(
        description=docstring, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def add_settings(parser: argparse.ArgumentParser, help: str = "any key of a study") -> None:
    """Add the words KEY=VALUE, which replace keys of a study's file."""
    # Without a default, argparse calls these words required when another one is missing.
    parser.add_argument("settings", nargs="*", default=[], metavar="KEY=VALUE", help=help)


def add_profile(parser: argparse.ArgumentParser, help: str) -> None:
    """Add the option --profile, the folder of a profile of Snakemake."""
    parser.add_argument("--profile", type=Path, default=Path("profiles/laptop"), help=help)


def named_study(words: Sequence[str]) -> "Study":
    """The study that words KEY=VALUE name, `bakeoff` by default, with the keys that they change.

    Raises:
        UserError: there is no such study, or a key or value is wrong.
    """
    # Imported here: the jobs of stages import this module and read no study.
    from hgrpo.study.overrides import OF_THE_RUN, read_assignments
    from hgrpo.study.study import load_study

    config = {"study": "bakeoff"} | read_assignments(words)
    overrides = {key: value for key, value in config.items() if key not in OF_THE_RUN}
    return load_study(Path(f"configs/studies/{config['study']}.yaml"), overrides)
