"""Fetching official data files: resumable, checked, and never mistaking a web page for data."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import requests
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_any,
    wait_exponential,
    wait_random,
)
from tqdm import tqdm

from hgrpo.envs.source import Source
from hgrpo.errors import UserError

# What is lost of a chunk when the line is cut in it.
_CHUNK = 1 << 16
_LONGEST_PAUSE_S = 60.0
# A line that drops comes back in minutes; where none was ever reached there is none.
_ATTEMPTS_WITHOUT_NETWORK = 3


@dataclass(frozen=True, slots=True)
class Receipt:
    """What lies on disk now; `size` in bytes, `sha256` in hex."""

    path: Path
    url: str
    size: int
    sha256: str


def fetch(
    source: Source,
    destination: Path,
    *,
    attempts: int = 8,
    pause_s: float = 1.0,
    timeout_s: float = 60.0,
) -> Receipt:
    """Fetch a file whole, or not at all; a file that is there already is only checked.

    What has come of an unfinished download lies beside the destination, as `.part`. It is taken up
    again, in this call and in later ones, as long as it is certain that the rest will fit: the
    server gave it an ETag or a date to ask by, or the checksum will tell.

    Args:
        source: where it is, and its size and checksum where they are known.
        destination: the file to write; its folder is made.
        attempts: requests in all, 3 at most while nothing answers and nothing has come.
            Between them the pause doubles from `pause_s`, with jitter.
        timeout_s: how long the server may be silent.

    Raises:
        UserError: there is no network, the server refuses or sends a web page, the file differs
            from what is expected, or it cannot be written.
    """
    if destination.is_dir():
        raise UserError(f"{destination}: a file's path was expected, this is a folder")
    if destination.exists():
        return _receipt(destination, destination, source, "remove it to fetch it again")
    part = _Part(destination)
    retrying = Retrying(
        stop=stop_any(stop_after_attempt(attempts), _without_network(part)),
        retry=retry_if_exception_type(_PassingError),
        wait=wait_exponential(pause_s, max=_LONGEST_PAUSE_S) + wait_random(0, pause_s),
        reraise=True,
    )
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        retrying(_request, source, part, timeout_s)
    except _PassingError as error:
        if part.size and part.fits(source):
            rest = f"; run it again to go on after byte {part.size:,}"
        else:
            part.discard()
            rest = "; is there a network?" if error.unreachable else ""
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
    part.become(destination)
    return receipt


class _PassingError(Exception):
    """This request failed; another may not."""

    def __init__(self, message: str, unreachable: bool = False):
        super().__init__(message)
        self.unreachable = unreachable


def _without_network(part: "_Part") -> Callable[[RetryCallState], bool]:
    """Whether to give up since nothing was ever reached."""

    def stop(state: RetryCallState) -> bool:
        unreachable = state.outcome.exception().unreachable
        return unreachable and not part.size and state.attempt_number >= _ATTEMPTS_WITHOUT_NETWORK

    return stop


class _Part:
    """The unfinished file and, beside it, a note of what it is a part of."""

    def __init__(self, destination: Path):
        self.path = destination.with_name(f"{destination.name}.part")
        self._note = destination.with_name(f"{destination.name}.part.json")

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def validator(self, source: Source) -> str | None:
        """What the server called this version of the file, if it did and the address is that."""
        try:
            note = json.loads(self._note.read_text())
            return note["validator"] if note["url"] == source.url else None
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def fits(self, source: Source) -> bool:
        """Whether a download that goes on from here is sure to give the whole file or an error."""
        return self.validator(source) is not None or source.sha256 is not None

    def begin(self, source: Source, validator: str | None) -> None:
        """Empty the file; it is now the beginning of this version of the source."""
        self.path.write_bytes(b"")
        self._note.write_text(json.dumps({"url": source.url, "validator": validator}))

    def become(self, destination: Path) -> None:
        self.path.replace(destination)
        self._note.unlink(missing_ok=True)

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)


def _request(source: Source, part: _Part, timeout_s: float) -> None:
    """Ask once for what is missing, and write what comes.

    Raises:
        _PassingError: no answer, an answer that may pass, or less than was announced.
        UserError: an answer that will stay.
    """
    # Compressed bytes could not be counted or resumed.
    headers = {"Accept-Encoding": "identity"}
    if part.size and part.fits(source):
        headers["Range"] = f"bytes={part.size}-"
        if part.validator(source) is not None:
            # A server whose file has changed then sends all of it, with status 200.
            headers["If-Range"] = part.validator(source)
    try:
        with requests.get(source.url, headers=headers, stream=True, timeout=timeout_s) as response:
            _receive(response, source, part)
    except (
        requests.exceptions.InvalidURL,
        requests.exceptions.InvalidSchema,
        requests.exceptions.MissingSchema,
    ) as error:
        raise UserError(f"{source.url}: not an address ({error})") from None
    except requests.exceptions.RequestException as error:
        unreachable = isinstance(error, requests.exceptions.ConnectionError)
        raise _PassingError(type(error).__name__, unreachable) from None


def _receive(response: requests.Response, source: Source, part: _Part) -> None:
    status = response.status_code
    if status == 416 and part.size:
        _no_such_range(response, part)
        return
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
        part.begin(source, _validator(response))
    elif start != part.size:
        part.discard()
        raise _PassingError(f"the server went on at byte {start}, not {part.size}")
    _write(chain([head], chunks), part, total)
    if total is not None and part.size != total:
        raise _PassingError(f"{part.size} of {total} bytes came")


def _write(chunks: Iterator[bytes], part: _Part, total: int | None) -> None:
    with (
        part.path.open("ab") as handle,
        tqdm(
            desc=part.path.stem,
            total=total,
            initial=part.size,
            unit="B",
            unit_scale=True,
            mininterval=1,
            disable=None,
        ) as bar,
    ):
        for chunk in chunks:
            handle.write(chunk)
            bar.update(len(chunk))


def _no_such_range(response: requests.Response, part: _Part) -> None:
    """Return when the part is all there is (`Content-Range: bytes */size`), else start anew."""
    if response.headers.get("Content-Range", "").rpartition("/")[2] != str(part.size):
        part.discard()
        raise _PassingError("the server's file is shorter than what came of it before")


def _extent(response: requests.Response) -> tuple[int, int | None]:
    """First byte of the body, and bytes of the whole file if the server says."""
    if response.status_code == 206:
        span = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
        if span is None:
            raise _PassingError("a partial answer without Content-Range")
        return int(span[1]), None if span[2] == "*" else int(span[2])
    length = response.headers.get("Content-Length")
    return 0, None if length is None else int(length)


def _validator(response: requests.Response) -> str | None:
    """What If-Range may hold: a strong ETag, else the date of the file (RFC 9110, 13.1.5)."""
    tag = response.headers.get("ETag")
    return tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified")


def _page_title(response: requests.Response, head: bytes) -> str | None:
    """Title of the web page that the answer is, "" without one; None where it is none."""
    begins = head.lstrip()[:14].lower()
    declared = "text/html" in response.headers.get("Content-Type", "").lower()
    if not declared and not begins.startswith((b"<!doctype html", b"<html")):
        return None
    title = re.search(rb"<title[^>]*>(.*?)</title>", head, re.DOTALL | re.IGNORECASE)
    return title[1].decode(errors="replace").strip() if title else ""


def _receipt(file: Path, destination: Path, source: Source, remedy: str) -> Receipt:
    """Check the file and say what it is; `destination` is the path it will have."""
    size = file.stat().st_size
    if source.size not in (None, size):
        raise UserError(f"{destination}: {size} bytes, {source.size} were expected; {remedy}")
    with file.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    if source.sha256 not in (None, digest):
        raise UserError(
            f"{destination}: the SHA-256 is {digest}, {source.sha256} was expected; {remedy}"
        )
    return Receipt(destination, source.url, size, digest)
