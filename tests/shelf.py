"""A server on this machine that cuts lines, changes files and lies."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Shelf:
    """What the server has, how it misbehaves, and what it was asked.

    Attributes:
        content: what it sends for every path that `files` does not name.
        files: path -> what it sends.
        cuts: bytes after which it drops the line, one answer after another.
        statuses: status of the answers, one after another; then 200.
    """

    content: bytes = b""
    files: dict[str, bytes] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    ranges: bool = True
    media_type: str = "application/octet-stream"
    requests: list[dict[str, str]] = field(default_factory=list)
    address: str = ""
    url: str = ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        shelf = self.server.shelf
        shelf.requests.append({"path": self.path, **dict(self.headers)})
        status = shelf.statuses.pop(0) if shelf.statuses else 200
        whole = shelf.files.get(self.path, shelf.content)
        body, start = whole, self._start(shelf)
        if status == 200 and start is not None:
            status = 206 if start < len(body) else 416
        body = {200: body, 206: body[start:], 416: b""}.get(status, b"<html>refused</html>")
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{len(whole) - 1}/{len(whole)}")
        if status == 416:
            self.send_header("Content-Range", f"bytes */{len(whole)}")
        self.send_header("Content-Type", shelf.media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status in (200, 206) and shelf.cuts:
            body = body[: shelf.cuts.pop(0)]
            self.close_connection = True
        self.wfile.write(body)

    def _start(self, shelf: Shelf) -> int | None:
        if not shelf.ranges or "Range" not in self.headers:
            return None
        return int(re.fullmatch(r"bytes=(\d+)-", self.headers["Range"])[1])

    def log_message(self, *_):
        pass


@contextmanager
def serving(content: bytes = b"", files: dict[str, bytes] | None = None) -> Iterator[Shelf]:
    """Serve until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    address = f"http://127.0.0.1:{server.server_port}"
    server.shelf = Shelf(content, files or {}, address=address, url=f"{address}/file")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.shelf
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
