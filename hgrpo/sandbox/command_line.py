"""Functions that the sandbox's commands share: parsing flags, writing outputs, and set-up."""

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
    """Options of a command in addition to the settings of its run."""

    seed: int = Field(0, description="first seed")
    num_seeds: int = Field(3, ge=1, description="number of seeds")
    device: Literal["cpu", "cuda"] = Field("cpu", description="PyTorch device")
    verbose: bool = Field(True, description="show a progress bar and a closing line")

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
    """Parse the flags of a command, one per field of the models; return values as strings.

    Args:
        name: name of the piece, for the help text.
        text: description in the help text.
        defaults: default values that replace those of the models, by field.
        skip: fields that have no flag.

    Raises:
        UserError: a flag is unknown or its value is missing.
    """
    # pydantic_settings is imported only here, because planning a study does not need it.
    from pydantic_settings import BaseSettings, CliSettingsSource, SettingsError

    defaults = {**(defaults or {})}
    fields = {
        key: field
        for model in models
        for key, field in model.model_fields.items()
        if key not in skip
    }
    # A list is given as one comma-separated value. If a flag is repeated, its last value is used.
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
    """Select the values that belong to fields of the model."""
    return {key: value for key, value in values.items() if key in model.model_fields}


def _spelled(word: str) -> str:
    flag, equals, value = word.partition("=")
    return f"--{flag[2:].replace('-', '_')}{equals}{value}" if word.startswith("--") else word


def print_notes(lines: Iterable[str]) -> None:
    """Print each line to stderr, as a note."""
    for line in lines:
        print(f"note: {line}", file=sys.stderr)


def check_output(output: Path) -> None:
    """Create the output file's folder, and print a note if the file already exists.

    Call this before a run, so that a long run does not fail because its output is not writable.

    Raises:
        UserError: the output is a folder, or its folder cannot be created or is not writable.
    """
    if output.is_dir():
        raise UserError(f"--output: {output} is a folder; specify a file")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--output: {output.parent}: {error.strerror}") from None
    if not os.access(output.parent, os.W_OK):
        raise UserError(f"--output: {output.parent} is not writable")
    if output.exists():
        print_notes(
            [f"--output: {output} already exists and will be replaced at the end of the run"]
        )


def prepare_torch(device: str = "cpu") -> None:
    """Set PyTorch's default device, and limit PyTorch to one thread unless OMP_NUM_THREADS is set.

    Small nets do not benefit from more threads. Call this function before importing modules that
    create tensors on import.

    Raises:
        UserError: PyTorch detects no GPU.
    """
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise UserError(f"--device cuda: PyTorch {torch.__version__} detects no GPU")
    # Setting a default device slows down every PyTorch call, so leave it unset for the CPU.
    torch.set_default_device(None if device == "cpu" else device)
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)


def write_rows(rows: Sequence[Mapping[str, Any]], target: Path, first: Sequence[str]) -> None:
    """Write rows as CSV: first the columns in `first`, then others in order of appearance."""
    import pandas as pd

    from hgrpo.report.csv_file import write_csv

    names = dict.fromkeys(first) | dict.fromkeys(name for row in rows for name in row)
    with atomic_file(target) as path:
        write_csv(pd.DataFrame(rows, columns=list(names)), path)
