"""Read a study's environment, model and method files, and apply command-line overrides."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import getitem
from pathlib import Path
from typing import Any

from hgrpo.config.read import check_name, merge, read_yaml, validate
from hgrpo.errors import UserError, did_you_mean
from hgrpo.learning.method import MethodConfig
from hgrpo.policy.settings import ModelConfig
from hgrpo.stages.sections import environment_settings
from hgrpo.study.overrides import parse_overrides

_MAKE = {
    "env": environment_settings,
    "model": partial(validate, ModelConfig),
    "method": partial(validate, MethodConfig),
}


@dataclass(frozen=True)
class NamedFiles:
    """The config files in `configs`, with command-line overrides.

    `typed` maps "env", "model" and "methods.<name>" to mappings from overridden keys to values.
    `overridden` contains the overrides that have been applied so far.
    """

    configs: Path
    typed: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    overridden: dict[str, object] = field(default_factory=dict)

    def read(self, kind: str, name: str, where: str, also: Iterable[str] = ()) -> Any:
        """Read the settings in a file; `kind` is "env", "model" or "method".

        If the file is missing, the message starts with `where`. It can suggest a name in `also`.

        Raises:
            UserError: the file is missing or invalid; the message has one line per mistake.
        """
        content, source = named(self.configs / f"{kind}s", name, where, also)
        if kind != "env":  # in an env file, `name` is the name of the game
            check_name(content, Path(source))
        settings = _MAKE[kind](content, source)
        place = f"methods.{name}" if kind == "method" else kind
        if not (keys := self.typed.get(place)):
            return settings
        changed = parse_overrides(keys, type(settings), f"{place}.")
        here = ", ".join(f"{place}.{key}" for key in keys)
        source = f"command line: {source} with {here} overridden"
        settings = _MAKE[kind](merge(content, changed), source)
        for key in keys:
            self.overridden[f"{place}.{key}"] = reduce(getitem, key.split("."), changed)
        return settings


def named(folder: Path, name: str, where: str, also: Iterable[str] = ()) -> tuple[dict, str]:
    """The content of the file `name` in `folder`, and its path."""
    path = folder / f"{name}.yaml"
    if not path.is_file():
        known = did_you_mean(name, [*(other.stem for other in folder.glob("*.yaml")), *also])
        raise UserError(f"{where}: {name!r}: no such file {path}{known}")
    return read_yaml(path), str(path)
