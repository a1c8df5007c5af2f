"""Define user errors, helpers for their messages, and the import of plug-ins."""

import difflib
import importlib
import traceback
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

# Errors that zipfile raises for a damaged, truncated or unsupported archive. RuntimeError: the
# archive is encrypted. NotImplementedError: zipfile does not support the compression method.
BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


class UserError(Exception):
    """Invalid input. The message says which file, key or value is invalid, and what is expected."""


class TrainingError(UserError):
    """Training cannot continue, e.g. because of a non-finite loss; finished steps are kept."""


def one_line(error: Exception) -> str:
    """The text of an error on one line."""
    return " ".join(str(error).split())


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Suggest the known word closest to `word`, or list all known words."""
    known = sorted({*known})
    lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {lower[near[0]]!r}?"
    return f"; known: {', '.join(known)}" if known else ""


def import_plug_in(name: str) -> ModuleType:
    """Import a module by its dotted name.

    Raises:
        ValueError: the import failed; the message contains the error and its file and line.
    """
    try:
        return importlib.import_module(name)
    except Exception as error:  # a user's module may raise any exception
        raise ValueError(f"{name} cannot be imported: {_origin(error)}") from error


def _origin(error: Exception) -> str:
    """The type and text of an error, and the file and line that raised it."""
    if isinstance(error, SyntaxError):
        file, line, text = error.filename or "", error.lineno, error.msg
    else:
        frames = traceback.extract_tb(error.__traceback__)
        last = [frame for frame in frames if "importlib" not in frame.filename][-1]
        file, line, text = last.filename, last.lineno, one_line(error)
    return f"{type(error).__name__}: {text} ({Path(file).name}, line {line})"
