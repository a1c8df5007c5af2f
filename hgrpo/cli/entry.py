"""Shared by all commands: reading --config, errors of one line, exit codes."""

import argparse
import errno
import gc
import json
import os
import pkgutil
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import yaml

from hgrpo.config.read import Model, validate
from hgrpo.envs.environment import EnvSettings
from hgrpo.envs.kinds import environment_settings
from hgrpo.errors import UserError
from hgrpo.rollout.settings import EngineConfig

USER_ERROR = 2
INTERRUPTED = 130


def run(main: Callable[[], None]) -> None:
    """Call `main`; turn a UserError or Ctrl-C into one line on stderr and a non-zero exit."""
    # SIGTERM too: a shell starts background jobs with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # A stage makes millions of small objects and few reference cycles. At the default threshold,
    # garbage collection takes a tenth of its time.
    gc.set_threshold(100_000, 50, 1000)
    try:
        main()
        # Without this, the last collection at exit takes seconds.
        gc.freeze()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(USER_ERROR)
    except KeyboardInterrupt:
        print(
            "interrupted: no output was written; run the same command again",
            file=sys.stderr,
        )
        sys.exit(INTERRUPTED)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        full = not where and error.errno in (errno.ENOSPC, errno.EDQUOT)
        # The system does not say which disk is full.
        which = f" (of the output or of {os.environ.get('TMPDIR', '/tmp')})" if full else ""
        print(f"error: {where}{error.strerror or error}{which}", file=sys.stderr)
        sys.exit(USER_ERROR)


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


def section(config: Mapping, key: str, model: type[Model]) -> Model:
    """The part of a stage's settings under `key`.

    Raises:
        UserError: it is missing or invalid.
    """
    if key not in config:
        raise UserError(f"--config: key {key!r} is missing")
    return validate(model, config[key], f"--config: {key}")


def env_section(config: Mapping) -> EnvSettings:
    """The environment of a stage's settings, under `env`.

    Raises:
        UserError: it is missing or invalid.
    """
    if "env" not in config:
        raise UserError("--config: key 'env' is missing")
    return environment_settings(config["env"], "--config: env")


def engine_section(config: Mapping) -> EngineConfig:
    """The rollout engine of a stage's settings, under `engine`; the default where it is left out.

    Raises:
        UserError: it is invalid.
    """
    return validate(EngineConfig, config.get("engine", {}), "--config: engine")


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
    """Say which commands there are, for who takes this module for one."""
    found = pkgutil.iter_modules([str(Path(__file__).parent)])
    names = ", ".join(module.name for module in found if module.name != Path(__file__).stem)
    raise UserError(f"hgrpo.cli.entry is what the commands share, and none itself; known: {names}")


if __name__ == "__main__":
    run(main)
