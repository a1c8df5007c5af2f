"""What all commands share: their common arguments, and reading --config."""

import argparse
import json
import pkgutil
from pathlib import Path

import yaml

from hgrpo.command import run
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


def arguments(docstring: str) -> argparse.ArgumentParser:
    """A parser with the module's docstring as help text and the --config option."""
    parser = argparse.ArgumentParser(
        description=docstring, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--config",
        required=True,
        help="the stage's settings: JSON text, or the path of a JSON or YAML file",
    )
    return parser


def main() -> None:
    """List the commands, for a user who runs this module as if it were one."""
    found = pkgutil.iter_modules([str(Path(__file__).parent)])
    names = ", ".join(module.name for module in found if module.name != Path(__file__).stem)
    raise UserError(f"hgrpo.cli.entry is what the commands share, and none itself; known: {names}")


if __name__ == "__main__":
    run(main)
