"""The commands: `python -m hgrpo.cli.<name>`. Each stage is also a command."""

import importlib.util
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path

from hgrpo.stages.order import STAGES


class _SharedCommands(MetaPathFinder):
    """Import hook: the name of any stage imports `job.py`."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        package, _, command = name.rpartition(".")
        if package != __name__ or command not in STAGES:
            return None
        return importlib.util.spec_from_file_location(name, Path(__file__).with_name("job.py"))


sys.meta_path.append(_SharedCommands())
