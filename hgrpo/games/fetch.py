"""Downloads official data files and verifies their size and checksum."""

import hashlib
import re
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.errors import UserError
from hgrpo.games import tracking

if TYPE_CHECKING:
    import requests

ATTEMPTS = 8
# Bounds of the exponential backoff (seconds); most dropped connections recover within minutes.
FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
# A request is repeated if the server sends no data for this many seconds.
_TIMEOUT_S = 60.0
# Number of bytes per write. At most this many bytes are lost if the connection drops.
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Source:
    """URL of a file, with its size (bytes) and SHA-256 (hex), or None if these are unknown."""

    url: str
    size: int | None = None
    sha256: str | None = None


def fetch(source: Source, path: Path, key: str) -> dict[str, str | int]:
    """Download a file, or verify an existing one; return its size (bytes) and sha256 (hex).

    The download is written to `<name>.part` and then moved atomically to `path`. An interrupted
    download is resumed, even by a later call, if the checksum is known. Otherwise it starts over,
    because the server's file may have changed, and a mix of two versions would not be detected.

    Args:
        key: the setting that contains the file's path; error messages begin with this key.

    Raises:
        UserError: requests or tenacity is not installed, the network is unavailable, the server
            refuses the request or sends a web page, the size or checksum is wrong, or the file
            cannot be written.
    """
    place = "" if path.exists() else f" (alternatively, copy the file to {path})"
    try:
        if path.exists():
            return _receipt(path, path, source, "delete it to download it again")
        return _download(source, path)
    except ImportError as error:
        raise UserError(
            f"{key}: downloads require two packages; run: pip install requests tenacity ({error})"
        ) from None
    except UserError as error:
        raise UserError(f"{key}: {error}{place}") from None


class _PassingError(Exception):
    """A request failed for a temporary reason and should be repeated."""


def _download(source: Source, path: Path) -> dict[str, str | int]:
    import tenacity

    part = path.with_name(f"{path.name}.part")
    pause = tenacity.wait_exponential(FIRST_PAUSE_S, max=_LONGEST_PAUSE_S)
    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        retry=tenacity.retry_if_exception_type(_PassingError),
        wait=pause + tenacity.wait_random(0, FIRST_PAUSE_S),
        reraise=True,
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        retrying(_request, source, part)
    except _PassingError as error:
        rest = f"; run again to resume after byte {_done(source, part):,}"
        if not _done(source, part):
            part.unlink(missing_ok=True)
            rest = ""
        raise UserError(
            f"{source.url}: download failed after {retrying.statistics['attempt_number']} attempts "
            f"({error}){rest}"
        ) from None
    except OSError as error:
        raise UserError(f"{part}: cannot be written ({error.strerror or error})") from None
    try:
        receipt = _receipt(part, path, source, "the downloaded file has been deleted")
    except UserError:
        part.unlink()
        raise
    part.replace(path)
    return receipt


def _done(source: Source, part: Path) -> int:
    """Number of bytes that earlier requests have downloaded and that can be kept."""
    done = part.stat().st_size if source.sha256 and part.exists() else 0
    return 0 if source.size and done > source.size else done


def _request(source: Source, part: Path) -> None:
    """Request the missing bytes and write the response.

    Raises:
        _PassingError: the server does not respond, reports a temporary error, or sends too few
            bytes.
        UserError: the URL is malformed, the initial connection fails, the server refuses the
            request, or the response is not the expected file.
    """
    import requests

    done = _done(source, part)
    if done and done == source.size:
        return
    # Request uncompressed bytes, because the resume offset refers to the file itself.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={done}-"} if done else {})
    try:
        with requests.get(source.url, headers=headers, stream=True, timeout=_TIMEOUT_S) as answer:
            _receive(answer, source, part, done)
    except requests.exceptions.RequestException as error:
        if isinstance(error, ValueError):  # the URL is malformed
            raise UserError(f"{source.url}: not a valid URL ({error})") from None
        name = type(error).__name__
        if isinstance(error, requests.exceptions.ConnectionError) and not part.exists():
            raise UserError(f"{source.url}: cannot connect ({name}); check the network") from None
        raise _PassingError(name) from None


def _receive(response: "requests.Response", source: Source, part: Path, done: int) -> None:
    status = response.status_code
    if status in (408, 429) or status >= 500:
        raise _PassingError(f"HTTP {status}")
    chunks = response.iter_content(_CHUNK)
    head = next(chunks, b"")
    page = _page_title(response, head)
    if status not in (200, 206):
        title = f", {page!r}" if page else ""
        raise UserError(
            f"{source.url}: the server responded with HTTP {status} {response.reason}{title}"
        )
    if page is not None:
        raise UserError(
            f"{source.url}: the server sent a web page ({page!r}) instead of the file; download "
            "the file with a browser and copy it to its path"
        )
    start = done if status == 206 else 0
    length = response.headers.get("Content-Length")
    total = None if length is None else start + int(length)
    if total is not None and source.size not in (None, total):
        raise UserError(
            f"{source.url}: expected {source.size} bytes, but the file on the server has {total}"
        )
    with (
        part.open("ab" if start else "wb") as file,
        tracking.bar.wrapattr(
            file, "write", total, part.stem, initial=start, disable=None
        ) as counted,
    ):
        for chunk in chain([head], chunks):
            counted.write(chunk)
    if total not in (None, size := part.stat().st_size):
        raise _PassingError(f"received {size} of {total} bytes")


def _page_title(response: "requests.Response", head: bytes) -> str | None:
    """Title of a web page, or "" if it has no title; None if the response is not a web page."""
    begins = head.lstrip()[:14].lower()
    declared = "text/html" in response.headers.get("Content-Type", "").lower()
    if not declared and not begins.startswith((b"<!doctype html", b"<html")):
        return None
    title = re.search(rb"<title[^>]*>(.*?)</title>", head, re.DOTALL | re.IGNORECASE)
    return title[1].decode(errors="replace").strip() if title else ""


def _receipt(file: Path, path: Path, source: Source, remedy: str) -> dict[str, str | int]:
    """Verify a file and return its size and sha256. Error messages contain `path` and `remedy`."""
    size = file.stat().st_size
    if source.size not in (None, size):
        raise UserError(f"{path}: expected {source.size} bytes, not {size}; {remedy}")
    with file.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    if source.sha256 not in (None, digest):
        raise UserError(f"{path}: expected SHA-256 {source.sha256}, not {digest}; {remedy}")
    return {"size": size, "sha256": digest}
