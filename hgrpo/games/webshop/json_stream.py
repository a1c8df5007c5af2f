"""Parses a large JSON file value by value, and validates the values.

As in the original, the non-standard numbers `NaN` and `Infinity` are accepted.
"""

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO, TypeVar

from pydantic import BaseModel, ValidationError

from hgrpo.errors import UserError

# First byte of a file -> JSON type and closing character.
_TOP = {b"[": ("array", "]"), b"{": ("object", "}")}
_CHUNK = 1 << 20  # characters per read
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")
# If the buffer ends within a value, the parser reports an unterminated string, or an error at most
# this many characters before the end of the buffer.
_LONGEST_TOKEN = 16
Model = TypeVar("Model", bound=BaseModel)


def elements(path: Path, top: bytes) -> Iterator:
    """Yield the elements of a JSON array or, if `top` is "{", the (key, value) pairs of an object.

    Raises:
        UserError: the file is unreadable, incomplete, not a JSON array or object, or nested too
            deeply.
    """
    number = 0
    try:
        with path.open("rb") as handle:
            first = handle.read(4096).removeprefix(codecs.BOM_UTF8).lstrip()[:1]
        if first != top:
            begins = f"begins with {first.decode(errors='replace')!r}" if first else "is empty"
            raise UserError(f"{path}: expected a JSON {_TOP[top][0]}, but the file {begins}")
        with path.open(encoding="utf-8-sig", errors="surrogateescape") as handle:
            for element in _elements(_Values(handle), top):
                number += 1
                yield element
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except RecursionError:
        raise UserError(f"{path}: the JSON after entry {number} is nested too deeply") from None
    except UnicodeEncodeError:
        raise UserError(f"{path}: the text after entry {number} is not UTF-8") from None
    except ValueError as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else error
        raise UserError(
            f"{path}: invalid or truncated JSON after entry {number} ({reason})"
        ) from None


def _elements(values: "_Values", top: bytes) -> Iterator:
    close = _TOP[top][1]
    values.take(top.decode())
    while values.mark() != close:
        element = values.value()
        if top == b"{":
            if not isinstance(element, str):
                raise ValueError("expected a string as key")
            values.take(":")
            element = element, values.value()
        yield element
        if values.mark() != close:
            values.take(",")
            if values.mark() == close:
                raise ValueError(f"expected a value before {close!r}")
    values.take(close)
    if values.mark():
        raise ValueError(f"extra data after the closing {close!r}")


class _Values:
    def __init__(self, handle: TextIO) -> None:
        self._handle = handle
        self._text, self._at = "", 0

    def mark(self) -> str:
        """Return the next non-space character without consuming it; "" at the end of the file."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()
            if self._at < len(self._text) or not self._read_on():
                return self._text[self._at : self._at + 1]

    def take(self, mark: str) -> None:
        char = self.mark()
        if char != mark:
            raise ValueError(f"expected {mark!r}, not {char!r}" if char else "unexpected end")
        self._at += 1

    def value(self) -> object:
        self.mark()
        while True:
            try:
                parsed, end = _DECODER.raw_decode(self._text, self._at)
                # A number near the end of the buffer may be truncated: "0." would be parsed as 0.
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
            # Replace unpaired surrogates, which cannot be written to a file, with "?".
            return json.loads(json.dumps(parsed, ensure_ascii=False).encode(errors="replace"))
        return parsed

    def _read_on(self) -> bool:
        """Discard consumed text and read more; return False at the end of the file.

        Each call at least doubles the remaining text, so that a long value is parsed only a few
        times.
        """
        more = self._handle.read(max(_CHUNK, len(self._text) - self._at))
        if more:
            self._text, self._at = self._text[self._at :] + more, 0
        return bool(more)


def checked(model: type[Model], value: object, place: str) -> Model:
    """Validate a JSON value as a `model`; raise UserError with `place` and the first mistake.

    If `value` is itself a UserError, because the JSON was invalid, it is raised.
    """
    if isinstance(value, UserError):
        raise value
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        keys = "".join(f"{key}: " for key in first["loc"])
        raise UserError(f"{place}: {keys}{first['msg']}, not {first['input']!r:.60}") from None
