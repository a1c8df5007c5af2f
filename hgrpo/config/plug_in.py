"""Imports a user's plug-in, and reports any error in it in one line."""

import importlib
import traceback
from pathlib import Path
from types import ModuleType

from hgrpo.errors import one_line


def import_plug_in(name: str) -> ModuleType:
    """The module with this dotted name.

    Raises:
        ValueError: the module raised an error; the message names the error, its file and its line.
    """
    try:
        return importlib.import_module(name)
    except Exception as error:  # a user's file may raise anything while it is imported
        raise ValueError(f"{name} cannot be imported: {_origin(error)}") from error


def _origin(error: Exception) -> str:
    """An error's type and text, and the line that raised it."""
    if isinstance(error, SyntaxError):
        file, line, text = error.filename or "", error.lineno, error.msg
    else:
        frames = traceback.extract_tb(error.__traceback__)
        last = [frame for frame in frames if "importlib" not in frame.filename][-1]
        file, line, text = last.filename, last.lineno, one_line(error)
    return f"{type(error).__name__}: {text} ({Path(file).name}, line {line})"
