"""The job of a stage, the files and folders that its command takes, the forms of its --config.

The stage's `Paths` declares files and folders as fields. A stage's Snakemake rule and its command
read the same declaration. The rule fills the options with its inputs and outputs, and the command
parses the options.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class Job:
    """One job of a stage.

    Attributes:
        method: name of the arm; "" if the job belongs to all arms.
        seed: the run's seed; in stages before the runs, the seed of the random draws.
        round: number of the round, from 1; round 0 is the SFT policy.
        code: hash of the code that the job runs, stored with its results and checkpoints.
    """

    method: str = ""
    seed: int = 0
    round: int = 0
    code: str = ""


def folder(of: str, description: str, optional: bool = False, many: bool = False) -> Any:
    """A field that holds the folder of a file or, with `many`, the folders of several files.

    Args:
        of: name of the rule's input or output file that lies in the folder.
        description: help text of the option.
        optional: whether the option may be left out; the field is then None, or [] with `many`.
        many: whether the option takes one or more folders.
    """
    return _field(of, description, optional, many, parent=True)


def file(
    of: str, description: str, optional: bool = False, many: bool = False, positional: bool = False
) -> Any:
    """A field that holds a file or, with `many`, several; `positional` files follow all options."""
    return _field(of, description, optional, many, positional=positional)


def place(description: str) -> Any:
    """An optional field that holds a folder that is neither input nor output of the rule."""
    return _field("", description, optional=True, many=False)


def number(description: str, default: int) -> Any:
    """A field that holds a whole number."""
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
    """A command's words for `files`: options in the order of the fields, then positional files.

    Args:
        paths: a stage's `Paths`.
        files: name -> file or files, the inputs and outputs of a job.
    """
    options: list[str] = []
    last: list[str] = []
    for declared in fields(paths):
        about = declared.metadata
        named = files.get(about["of"]) if about["of"] else None
        if not named:
            continue
        values = [str(each) for each in ([named] if isinstance(named, str) else named)]
        if about.get("parent"):
            values = list(dict.fromkeys(os.path.dirname(each) or "." for each in values))
        if about.get("positional"):
            last += values
        else:
            options += [option(declared), *values]
    # Without the separator, an option with several values would swallow the positional files.
    return options + (["--", *last] if last else [])


def file_or_section(config: Mapping, job: Job) -> dict:
    """Accept also the content of a file in configs/envs, which has no key `env`."""
    return dict(config) if "env" in config else {"env": config}
