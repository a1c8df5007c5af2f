"""Functions that several commands share: make the argument parser, and read --config."""

import argparse
import json
from pathlib import Path

import yaml

from hgrpo.errors import UserError


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
        text, name = path.read_text(), value
    try:
        loaded = json.loads(text) if text.lstrip().startswith("{") else yaml.safe_load(text)
    except (json.JSONDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{name}: neither JSON nor YAML ({error})") from None
    if not isinstance(loaded, dict):
        raise UserError(f"{name}: a mapping was expected, not {type(loaded).__name__}")
    return loaded


def command_parser(docstring: str) -> argparse.ArgumentParser:
    """A parser that shows the command's docstring as its help text."""
    return argparse.ArgumentParser(
        description=docstring, formatter_class=argparse.RawDescriptionHelpFormatter
    )
