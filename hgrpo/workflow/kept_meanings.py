"""The meanings of modules, kept in a file from one start of Snakemake to the next.

To read the package anew takes a second at every start, though its modules seldom change. The file
stands in `__pycache__`, where Python keeps compiled modules for the same reason. A meaning counts
only for the source that it was made from. Without the file, or if it is damaged, all is read anew.
"""

import atexit
import contextlib
import functools
import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

from hgrpo.atomic import atomic_file
from hgrpo.workflow import code_meaning
from hgrpo.workflow.code_meaning import PLUGINS, Meaning


@functools.cache
def reader() -> str:
    """What a meaning depends on besides the source: this Python, and the code that reads."""
    names = sorted((base, sorted(capabilities)) for base, capabilities in PLUGINS.items())
    facts = f"{sys.version_info[:2]}\0{names}\0".encode()
    return hashlib.sha256(facts + Path(code_meaning.__file__).read_bytes()).hexdigest()[:16]


class KeptMeanings:
    """The meanings of the modules of a package; the end of the process writes them down.

    Args:
        package: the folder of the package.
    """

    def __init__(self, package: Path):
        self._path = package / "__pycache__" / f"meanings-{reader()}.json"
        self._new = False
        try:
            self._known = dict(json.loads(self._path.read_bytes()))
        except (OSError, ValueError, TypeError):
            self._known = {}
        atexit.register(self.save)

    def get(self, name: str, source: bytes, make: Callable[[], Meaning]) -> Meaning:
        """The kept meaning, or else the one that `make` returns.

        Args:
            name: what tells it from others: the module, and how it is read.
            source: the module as it stands in its file.
            make: reads the module.
        """
        of = hashlib.sha256(source).hexdigest()
        with contextlib.suppress(LookupError, TypeError):
            before, kept = self._known[name]
            if before == of:
                return Meaning(*kept)
        made = make()
        self._known[name] = [of, made]
        self._new = True
        return made

    def save(self) -> None:
        """Write the file if there is something new; a folder that cannot be written is left."""
        if self._new and not sys.dont_write_bytecode:
            with contextlib.suppress(OSError):
                self._path.parent.mkdir(exist_ok=True)
                with atomic_file(self._path) as scratch:
                    text = json.dumps(self._known, separators=(",", ":"))
                    scratch.write_text(text, encoding="utf-8")
                self._new = False
