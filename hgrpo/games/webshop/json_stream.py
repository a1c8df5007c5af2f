"""Reads a large JSON file value by value, with Python's own JSON parser; checks values.

The original uses this parser too. It reads `NaN` and `Infinity` as numbers, although JSON does not
have them.
"""

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO, TypeVar

from pydantic import BaseModel, ValidationError

from hgrpo.errors import UserError

# First byte of a file -> its JSON kind and the character that closes it.
_TOP = {b"[": ("array", "]"), b"{": ("object", "}")}
_CHUNK = 1 << 20  # characters per read
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")
# If the end of the buffer cuts a value off, the parser's error lies within this many characters of
# the end, or reports an unterminated string.
_LONGEST_TOKEN = 16
Model = TypeVar("Model", bound=BaseModel)


def elements(path: Path, top: bytes) -> Iterator:
    """Yield the elements of a JSON array (top "["), or the (key, value) pairs of an object ("{").

    Raises:
        UserError: the file cannot be read, is not a complete JSON array or object, or is nested too
            deeply.
    """
    number = 0
    try:
        with path.open("rb") as handle:
            first = handle.read(4096).removeprefix(codecs.BOM_UTF8).lstrip()[:1]
        if first != top:
            begins = f"begins with {first.decode(errors='replace')!r}" if first else "is empty"
            raise UserError(f"{path}: a JSON {_TOP[top][0]} was expected; the file {begins}")
        with path.open(encoding="utf-8-sig", errors="surrogateescape") as handle:
            for element in _elements(_Values(handle), top):
                number += 1
                yield element
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except RecursionError:
        raise UserError(f"{path}: after entry {number}: nested very deeply") from None
    except UnicodeEncodeError:
        raise UserError(f"{path}: after entry {number}: text that is not UTF-8") from None
    except ValueError as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else error
        raise UserError(
            f"{path}: the JSON is broken or cut off after entry {number} ({reason})"
        ) from None


def _elements(values: "_Values", top: bytes) -> Iterator:
    close = _TOP[top][1]
    values.take(top.decode())
    while values.mark() != close:
        element = values.value()
        if top == b"{":
            if not isinstance(element, str):
                raise ValueError("a text was expected as a key")
            values.take(":")
            element = element, values.value()
        yield element
        if values.mark() != close:
            values.take(",")
            if values.mark() == close:
                raise ValueError(f"a value was expected before {close!r}")
    values.take(close)
    if values.mark():
        raise ValueError(f"more after the closing {close!r}")


class _Values:
    """Reads values and punctuation marks, one after another, from the JSON text in `handle`."""

    def __init__(self, handle: TextIO) -> None:
        self._handle = handle
        self._text, self._at = "", 0

    def mark(self) -> str:
        """Look at the next character that is not white space; "" at the end of the file."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()
            if self._at < len(self._text) or not self._read_on():
                return self._text[self._at : self._at + 1]

    def take(self, mark: str) -> None:
        """Skip the punctuation mark `mark`; ValueError if anything else comes next."""
        char = self.mark()
        if char != mark:
            raise ValueError(f"{mark!r} was expected, not {char!r}" if char else "it ends early")
        self._at += 1

    def value(self) -> object:
        """The next value; ValueError, RecursionError or UnicodeEncodeError if it is malformed."""
        self.mark()
        while True:
            try:
                parsed, end = _DECODER.raw_decode(self._text, self._at)
                # Near the buffer's end a number may be cut off: "0." would be read as 0.
                if end < len(self._text) - _LONGEST_TOKEN or not self._read_on():
                    break
            except json.JSONDecodeError as error:
                near_the_end = error.pos > len(self._text) - _LONGEST_TOKEN
                open_text = error.msg.startswith("Unterminated string")
                if not (near_the_end or open_text) or not self._read_on():
                    raise
        raw, self._at = self._text[self._at : end], end
        raw.encode()
        if "\\ud" in raw or "\\uD" in raw:
            # Half a surrogate pair cannot be written to a file. Replace it with "?".
            return json.loads(json.dumps(parsed, ensure_ascii=False).encode(errors="replace"))
        return parsed

    def _read_on(self) -> bool:
        """Drop what was taken, and read more. At the end of the file, only return False.

        Each call reads at least as much as is left over, so that a long value is not decoded too
        often.
        """
        more = self._handle.read(max(_CHUNK, len(self._text) - self._at))
        if more:
            self._text, self._at = self._text[self._at :] + more, 0
        return bool(more)


def checked(model: type[Model], value: object, place: str) -> Model:
    """Build `model` from a JSON value; UserError with `place` and the first mistake.

    A value that is a UserError, for text that is not JSON, is raised.
    """
    if isinstance(value, UserError):
        raise value
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        keys = "".join(f"{key}: " for key in first["loc"])
        raise UserError(f"{place}: {keys}{first['msg']}, not {first['input']!r:.60}") from None
