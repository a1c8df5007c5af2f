"""The commands: `python -m hgrpo.cli.<name>`. Each stage is also a command."""

import importlib.util
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path

from hgrpo.cli.moved import MOVED
from hgrpo.stages.order import STAGES


class _SharedCommands(MetaPathFinder):
    """Import hook: the name of any stage imports `job.py`; an old name imports `moved.py`."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        package, _, command = name.rpartition(".")
        if package != __name__:
            return None
        shared = "job.py" if command in STAGES else "moved.py" if command in MOVED else None
        return shared and importlib.util.spec_from_file_location(
            name, Path(__file__).with_name(shared)
        )


sys.meta_path.append(_SharedCommands())
