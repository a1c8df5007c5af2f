"""The command lines: `python -m hgrpo.cli.<name>`, where a name may be that of a stage."""

import importlib.util
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path

from hgrpo.cli.moved import MOVED
from hgrpo.stages.order import STAGES


class _SharedCommands(MetaPathFinder):
    """Import hook: `stage.py` is the command of every stage, `moved.py` that of every old name."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        package, _, command = name.rpartition(".")
        if package != __name__:
            return None
        shared = "stage.py" if command in STAGES else "moved.py" if command in MOVED else None
        return shared and importlib.util.spec_from_file_location(
            name, Path(__file__).with_name(shared)
        )


sys.meta_path.append(_SharedCommands())
