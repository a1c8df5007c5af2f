"""Parts of every command of the sandbox: flags, notes, outputs, PyTorch's threads."""

import argparse
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_origin

from pydantic import BaseModel, Field, create_model

from hgrpo.atomic import atomic_file
from hgrpo.command import OneLineParser
from hgrpo.config.strict import Strict
from hgrpo.errors import UserError, one_line


class Options(Strict):
    """Options of a command beside the settings of its run."""

    seed: int = Field(0, description="first seed")
    num_seeds: int = Field(3, ge=1, description="how many seeds")
    device: Literal["cpu", "cuda"] = Field("cpu", description="where tensors are")
    verbose: bool = Field(True, description="progress bar and closing line")

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(self.seed, self.seed + self.num_seeds))


def read_flags(
    name: str,
    words: Sequence[str],
    models: Iterable[type[BaseModel]],
    text: str = "",
    defaults: Mapping[str, Any] | None = None,
    skip: Iterable[str] = ("seeds",),
) -> dict[str, Any]:
    """The values that flags give to fields of the models, as they were typed.

    Args:
        name: the piece, for the help.
        text: the help's description.
        defaults: defaults of the command line that differ from the models'; the result has them.
        skip: fields without a flag.

    Raises:
        UserError: a flag is unknown or has no value.
    """
    # Imported here: planning a study reads this module and no flag.
    from pydantic_settings import BaseSettings, CliSettingsSource, SettingsError

    defaults = {**(defaults or {})}
    fields = {
        key: field
        for model in models
        for key, field in model.model_fields.items()
        if key not in skip
    }
    # A list is one word with commas, so that a later flag replaces it.
    lists = {key for key, field in fields.items() if get_origin(field.annotation) is tuple}
    flags = {
        key: (
            str if key in lists else field.annotation,
            Field(defaults.get(key, field.default), description=field.description),
        )
        for key, field in fields.items()
    }
    parser = OneLineParser(
        f"python -m hgrpo.cli.sandbox {name}",
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    try:
        typed = CliSettingsSource(
            create_model("Flags", __base__=BaseSettings, **flags),
            cli_parse_args=[_spelled(word) for word in words],
            root_parser=parser,
            cli_avoid_json=True,
            cli_hide_none_type=True,
            cli_implicit_flags=False,
            cli_kebab_case=False,
        )()
    except SettingsError as error:
        raise UserError(f"{name}: {one_line(error)}") from None
    return defaults | typed | {key: typed[key].split(",") for key in lists & typed.keys()}


def of_model(model: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of fields of the model."""
    return {key: value for key, value in values.items() if key in model.model_fields}


def _spelled(word: str) -> str:
    """Flags may be spelled with `-` or with `_`."""
    flag, equals, value = word.partition("=")
    return f"--{flag[2:].replace('-', '_')}{equals}{value}" if word.startswith("--") else word


def print_notes(lines: Iterable[str]) -> None:
    """Print each line to stderr, as a note."""
    for line in lines:
        print(f"note: {line}", file=sys.stderr)


def check_output(output: Path) -> None:
    """Make the output file's folder, and note that a file which is there already will be replaced.

    A run is long, so an output that cannot be written is refused before it.

    Raises:
        UserError: the output is a folder, or its folder cannot be made or written into.
    """
    if output.is_dir():
        raise UserError(f"--output: {output} is a folder; a file was expected")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--output: {output.parent}: {error.strerror}") from None
    if not os.access(output.parent, os.W_OK):
        raise UserError(f"--output: {output.parent}: no files can be written here")
    if output.exists():
        print_notes([f"--output: {output} is there already; the run replaces it when it is done"])


def prepare_torch(device: str = "cpu") -> None:
    """Choose where PyTorch makes tensors, and give it one thread.

    OMP_NUM_THREADS can give it more, but nets are small and gain nothing from them. Import modules
    that make tensors at import only after this call.

    Raises:
        UserError: PyTorch can use no GPU here.
    """
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise UserError(f"--device cuda: PyTorch {torch.__version__} can use no GPU here")
    # Any default device makes every call of PyTorch slower; without one, tensors are on the CPU.
    torch.set_default_device(None if device == "cpu" else device)
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)


def write_rows(rows: Sequence[Mapping[str, Any]], target: Path, first: Sequence[str]) -> None:
    """Write rows as CSV; columns in `first` lead, others follow in the order of appearance."""
    import pandas as pd

    from hgrpo.report.csv_file import write_csv

    names = dict.fromkeys(first) | dict.fromkeys(name for row in rows for name in row)
    with atomic_file(target) as path:
        write_csv(pd.DataFrame(rows, columns=list(names)), path)
