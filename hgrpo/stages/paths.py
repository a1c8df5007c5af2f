"""Declare a stage's job, and the options of its command that are files and folders.

Each of these options is a field of the stage's class `Paths`. The stage's Snakemake rule and its
command use the same declaration: the rule passes its inputs and outputs as options, and the command
parses them.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class Job:
    """One job of a stage.

    Attributes:
        method: name of the arm; "" if all arms share the job.
        seed: seed of the run. Stages before the training runs use the environment's seed.
        round: number of the round, starting at 1. Round 0 denotes the SFT policy.
        code: hash of the job's code, stored with results and checkpoints.
    """

    method: str = ""
    seed: int = 0
    round: int = 0
    code: str = ""


def folder(of: str, description: str, optional: bool = False, many: bool = False) -> Any:
    """A field for the folder that contains a file; with `many`, for the folders of several files.

    Args:
        of: name of the Snakemake input or output whose file is in the folder.
        description: help text of the option.
        optional: whether the option may be omitted. Its value is then None, or [] with `many`.
        many: whether the option takes several folders.
    """
    return _field(of, description, optional, many, parent=True)


def file(of: str, description: str, optional: bool = False, many: bool = False) -> Any:
    """A field for a file or, with `many`, for several files. The arguments are as in `folder`."""
    return _field(of, description, optional, many)


def place(description: str) -> Any:
    """An optional field for a folder that is neither an input nor an output of the rule."""
    return _field("", description, optional=True, many=False)


def number(description: str, default: int) -> Any:
    """A field for an integer."""
    metadata = {"of": "", "description": description, "optional": True, "many": False}
    return field(default=default, metadata=metadata | {"type": int, "default": default})


def _field(of: str, description: str, optional: bool, many: bool, **more: bool) -> Any:
    metadata = {"of": of, "description": description, "optional": optional, "many": many} | more
    if many and optional:
        return field(default_factory=list, metadata=metadata)
    return field(default=None, metadata=metadata) if optional else field(metadata=metadata)


def option(declared: Field) -> str:
    """The command-line option of a field: `--train-logs` for `train_logs`."""
    return "--" + declared.name.replace("_", "-")


def words(paths: type, files: Mapping[str, str | Sequence[str]]) -> list[str]:
    """Command-line arguments for `files`, in the order of the fields of `paths`.

    Args:
        paths: a stage's class `Paths`.
        files: a job's inputs and outputs; maps each name to a file or a list of files.
    """
    options: list[str] = []
    for declared in fields(paths):
        about = declared.metadata
        named = files.get(about["of"]) if about["of"] else None
        if not named:
            continue
        values = [str(each) for each in ([named] if isinstance(named, str) else named)]
        if about.get("parent"):
            values = list(dict.fromkeys(os.path.dirname(each) or "." for each in values))
        options += [option(declared), *values]
    return options


def file_or_section(config: Mapping, job: Job) -> dict:
    """Nest the settings under `env` if --config has the content of a file in configs/envs."""
    return dict(config) if "env" in config else {"env": config}
