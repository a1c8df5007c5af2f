"""Downloads official data files, resumes interrupted downloads, and checks the result.

If a server sends a web page in place of a file, `fetch` raises an error.
"""

import hashlib
import re
from itertools import chain
from pathlib import Path

import requests
import tenacity

from hgrpo.errors import UserError
from hgrpo.games import tracking
from hgrpo.games.source import Source

ATTEMPTS = 8
# The pause between requests doubles from the first pause to the longest, plus jitter. A dropped
# connection usually comes back within minutes.
FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
# How long a server may be silent.
_TIMEOUT_S = 60.0
# Bytes per write. A dropped connection loses at most one such chunk.
_CHUNK = 1 << 16


def fetch(source: Source, destination: Path) -> dict[str, str | int]:
    """Download a file completely, or leave nothing at `destination`; return its size and sha256.

    If `destination` exists, it is only checked. An unfinished download lies beside it, as
    `<name>.part`. A dropped download is resumed if a mix of two versions of the file can be
    detected: within a call by a strong ETag or a date from the server, in a later call by
    `source.sha256`.

    Raises:
        UserError: there is no network, the server refuses or sends a web page, the file differs
            from its size or checksum, or it cannot be written.
    """
    if destination.exists():
        return _receipt(destination, destination, source, "remove it to fetch it again")
    part = _Part(destination)
    pause = tenacity.wait_exponential(FIRST_PAUSE_S, max=_LONGEST_PAUSE_S)
    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        retry=tenacity.retry_if_exception_type(_PassingError),
        wait=pause + tenacity.wait_random(0, FIRST_PAUSE_S),
        reraise=True,
    )
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        retrying(_request, source, part)
    except _PassingError as error:
        if part.size and source.sha256 is not None:
            rest = f"; run it again to go on after byte {part.size:,}"
        else:
            part.discard()
            rest = ""
        raise UserError(
            f"{source.url}: not fetched in {retrying.statistics['attempt_number']} attempts "
            f"({error}){rest}"
        ) from None
    except OSError as error:
        raise UserError(f"{part.path}: cannot be written ({error.strerror or error})") from None
    try:
        receipt = _receipt(part.path, destination, source, "what came has been removed")
    except UserError:
        part.discard()
        raise
    part.path.replace(destination)
    return receipt


class _PassingError(Exception):
    """A request failed but may succeed if repeated."""


class _Part:
    """An unfinished download; `validator` is the file's ETag or date, None if unknown."""

    def __init__(self, destination: Path):
        self.path = destination.with_name(f"{destination.name}.part")
        self.validator: str | None = None

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)


def _request(source: Source, part: _Part) -> None:
    """Ask once for the missing bytes, and write those that arrive.

    Raises:
        _PassingError: the server does not answer, reports a temporary error, sends too few bytes,
            or does not continue the part. A repeated request may succeed.
        UserError: the address is malformed, there is no connection for the first byte, or the
            server refuses or sends another file.
    """
    # The offset to resume at counts bytes of the file itself, so ask for uncompressed bytes.
    headers = {"Accept-Encoding": "identity"}
    if part.size and (part.validator or source.sha256):
        headers["Range"] = f"bytes={part.size}-"
        if part.validator:
            # Given If-Range, a server whose file has changed sends the whole file with status 200.
            headers["If-Range"] = part.validator
    try:
        with requests.get(source.url, headers=headers, stream=True, timeout=_TIMEOUT_S) as answer:
            _receive(answer, source, part)
    except requests.exceptions.RequestException as error:
        if isinstance(error, ValueError):  # the address is malformed
            raise UserError(f"{source.url}: not an address ({error})") from None
        name = type(error).__name__
        if isinstance(error, requests.exceptions.ConnectionError) and not part.size:
            raise UserError(f"{source.url}: no connection ({name}); is there a network?") from None
        raise _PassingError(name) from None


def _receive(response: requests.Response, source: Source, part: _Part) -> None:
    status = response.status_code
    if status == 416 and part.size:
        if response.headers.get("Content-Range", "") == f"bytes */{part.size}":
            return  # the part is complete already
        part.discard()
        raise _PassingError("the server's file is shorter than its first part here")
    if status in (408, 429) or status >= 500:
        raise _PassingError(f"HTTP {status}")
    chunks = response.iter_content(_CHUNK)
    head = next(chunks, b"")
    page = _page_title(response, head)
    if status not in (200, 206):
        title = f", {page!r}" if page else ""
        raise UserError(f"{source.url}: the server answers HTTP {status} {response.reason}{title}")
    if page is not None:
        raise UserError(
            f"{source.url}: the server sends a web page ({page!r}) in place of the file; open the "
            "address in a browser, save the file, and put it where it belongs"
        )
    start, total = _extent(response)
    if total is not None and source.size not in (None, total):
        part.discard()
        raise UserError(
            f"{source.url}: the server offers {total} bytes, {source.size} were expected"
        )
    if status == 200:
        part.path.write_bytes(b"")
        # A value for If-Range: a strong ETag, else the file's date (RFC 9110, section 13.1.5).
        tag = response.headers.get("ETag", "W/")
        part.validator = response.headers.get("Last-Modified") if tag.startswith("W/") else tag
    elif start != part.size:
        part.discard()
        raise _PassingError(f"the server went on at byte {start}, not {part.size}")
    with (
        part.path.open("ab") as file,
        tracking.bar.wrapattr(
            file, "write", total, part.path.stem, initial=part.size, disable=None
        ) as counted,
    ):
        for chunk in chain([head], chunks):
            counted.write(chunk)
    if total is not None and part.size != total:
        raise _PassingError(f"{part.size} of {total} bytes came")


def _extent(response: requests.Response) -> tuple[int, int | None]:
    """Offset of the body's first byte in the file, and the file's size (None if not given)."""
    if response.status_code == 206:
        span = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
        if span is None:
            raise _PassingError("a partial answer without Content-Range")
        return int(span[1]), None if span[2] == "*" else int(span[2])
    length = response.headers.get("Content-Length")
    return 0, None if length is None else int(length)


def _page_title(response: requests.Response, head: bytes) -> str | None:
    """Title of the web page, "" if it has none; None if the answer is not a web page."""
    begins = head.lstrip()[:14].lower()
    declared = "text/html" in response.headers.get("Content-Type", "").lower()
    if not declared and not begins.startswith((b"<!doctype html", b"<html")):
        return None
    title = re.search(rb"<title[^>]*>(.*?)</title>", head, re.DOTALL | re.IGNORECASE)
    return title[1].decode(errors="replace").strip() if title else ""


def _receipt(file: Path, destination: Path, source: Source, remedy: str) -> dict[str, str | int]:
    """Check `file` against `source`; return its size and sha256. Errors name `destination`."""
    size = file.stat().st_size
    if source.size not in (None, size):
        raise UserError(f"{destination}: {size} bytes, {source.size} were expected; {remedy}")
    with file.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    if source.sha256 not in (None, digest):
        raise UserError(
            f"{destination}: the SHA-256 is {digest}, {source.sha256} was expected; {remedy}"
        )
    return {"size": size, "sha256": digest}
