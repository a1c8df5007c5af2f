"""The command lines: `python -m hgrpo.cli.<name>`."""

import importlib.util
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec

from hgrpo.cli import moved


class _OldNames(MetaPathFinder):
    """Import hook that loads `moved.py` under every old name of a command."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name.removeprefix(f"{__name__}.") in moved.MOVED:
            return importlib.util.spec_from_file_location(name, moved.__file__)
        return None


sys.meta_path.append(_OldNames())
