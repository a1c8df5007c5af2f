"""Write the JSON Schemas of the config files, for validation in editors.

Example:
    python workflow_scripts/config_schemas.py configs/schema
"""

import json
from pathlib import Path
from typing import Annotated, Union

from pydantic import Field, TypeAdapter

from hgrpo.atomic import atomic_file
from hgrpo.cli.entry import command_parser
from hgrpo.command import run
from hgrpo.games.kinds import known, load
from hgrpo.learning.method import MethodConfig
from hgrpo.policy.settings import ModelConfig
from hgrpo.study.config import StudyConfig

_ENVIRONMENTS = Union[tuple(load(name).Settings for name in known())]  # noqa: UP007
SECTIONS = {
    "env": Annotated[_ENVIRONMENTS, Field(discriminator="name")],
    "method": MethodConfig,
    "model": ModelConfig,
    "study": StudyConfig,
}


def schemas() -> dict[str, str]:
    """Map the file name of each schema to its JSON text."""
    return {
        f"{name}.json": json.dumps(TypeAdapter(kind).json_schema(), indent=2, sort_keys=True) + "\n"
        for name, kind in SECTIONS.items()
    }


def main() -> None:
    """Write every schema into the given folder."""
    parser = command_parser(__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for name, text in schemas().items():
        with atomic_file(folder / name) as path:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    run(main)
