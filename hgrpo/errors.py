"""Errors that users can mend, parts of their messages, and the import of plug-ins."""

import difflib
import importlib
import traceback
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

# zipfile's errors for an archive that is damaged, cut off or not supported. RuntimeError: the
# archive is encrypted. NotImplementedError: zipfile lacks its compression.
BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


class UserError(Exception):
    """Bad input: the message names the file, key or value, and what was expected."""


class TrainingError(UserError):
    """Training cannot go on, for example because a loss is not finite; finished steps are kept."""


def one_line(error: Exception) -> str:
    """The text of a library's error on one line, to be part of a message."""
    return " ".join(str(error).split())


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Suggest the known word that resembles `word`; if none does, list all known words."""
    known = sorted({*known})
    lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {lower[near[0]]!r}?"
    return f"; known: {', '.join(known)}" if known else ""


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
