"""Downloads from a real server on this machine, which cuts lines, changes files and lies."""

import hashlib
import re
import socket

import pytest
from shelf import serving

from hgrpo.errors import UserError
from hgrpo.games.fetch import Source, fetch
from hgrpo.games.webshop.data import OFFICIAL

CONTENT = bytes(range(256)) * 2048
DIGEST = hashlib.sha256(CONTENT).hexdigest()
CONFIRM = (
    b"<!DOCTYPE html><html><head><title>Google Drive - Virus scan warning</title></head>"
    b"<body>Google Drive can't scan this file for viruses.</body></html>"
)


@pytest.fixture
def shelf(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(CONTENT) as shelf:
        yield shelf


def get(shelf, path, size=None, sha256=None, attempts=3) -> dict:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hgrpo.games.fetch.ATTEMPTS", attempts)
        patch.setattr("hgrpo.games.fetch.FIRST_PAUSE_S", 0.001)
        return fetch(Source(shelf.url, size, sha256), path, "key")


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_comes_whole_and_is_recorded(shelf, tmp_path):
    path = tmp_path / "new" / "file.json"
    assert get(shelf, path) == {"size": len(CONTENT), "sha256": DIGEST}
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == ["file.json"]


def test_after_a_cut_only_the_rest_is_asked_for(shelf, tmp_path):
    shelf.cuts = [200_000]
    receipt = get(shelf, tmp_path / "f", sha256=DIGEST, size=len(CONTENT))
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert receipt["sha256"] == DIGEST
    first, second = shelf.requests
    assert "Range" not in first
    start = int(second["Range"].removeprefix("bytes=").removesuffix("-"))
    assert 100_000 < start <= 200_000
    assert names(tmp_path) == ["f"]


def test_a_later_call_goes_on_where_an_earlier_one_gave_up(shelf, tmp_path):
    shelf.cuts = [200_000]
    with pytest.raises(
        UserError, match=r"download failed after 1 attempts .* resume after byte [\d,]+ \("
    ):
        get(shelf, tmp_path / "f", sha256=DIGEST, attempts=1)
    assert names(tmp_path) == ["f.part"]
    size = (tmp_path / "f.part").stat().st_size
    get(shelf, tmp_path / "f", sha256=DIGEST)
    assert shelf.requests[-1]["Range"] == f"bytes={size}-"
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_file_that_changed_meanwhile_is_noticed_by_its_checksum(shelf, tmp_path):
    shelf.cuts = [200_000]
    with pytest.raises(UserError):
        get(shelf, tmp_path / "f", sha256=DIGEST, attempts=1)
    shelf.content = CONTENT[::-1]
    with pytest.raises(UserError, match="SHA-256"):
        get(shelf, tmp_path / "f", sha256=DIGEST)
    assert names(tmp_path) == []


def test_without_a_checksum_a_download_starts_over(shelf, tmp_path):
    shelf.cuts = [200_000, 200_000]
    with pytest.raises(
        UserError, match=r"download failed after 2 attempts .*\) \(alternatively, copy"
    ):
        get(shelf, tmp_path / "f", attempts=2)
    assert ["Range" in headers for headers in shelf.requests] == [False, False]
    assert names(tmp_path) == []


def test_a_part_longer_than_the_file_is_dropped(shelf, tmp_path):
    (tmp_path / "f.part").write_bytes(CONTENT + b"more")
    get(shelf, tmp_path / "f", len(CONTENT), DIGEST)
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing_behind(shelf, tmp_path):
    with pytest.raises(UserError, match=rf"f: expected SHA-256 0{{64}}, not {DIGEST}"):
        get(shelf, tmp_path / "f", sha256="0" * 64)
    assert names(tmp_path) == []


def test_a_wrong_size_is_noticed_before_the_body(shelf, tmp_path):
    with pytest.raises(UserError, match=rf"7 bytes, but the file on the server has {len(CONTENT)}"):
        get(shelf, tmp_path / "f", size=7)
    assert names(tmp_path) == []
    assert len(shelf.requests) == 1


@pytest.mark.parametrize("media_type", ["text/html; charset=utf-8", "application/json"])
def test_a_page_in_place_of_the_file_is_named(shelf, tmp_path, media_type):
    shelf.content, shelf.media_type = CONFIRM, media_type
    with pytest.raises(UserError, match=r"web page \('Google Drive - Virus scan warning'\)"):
        get(shelf, tmp_path / "f")
    assert names(tmp_path) == []
    assert len(shelf.requests) == 1


def test_a_page_does_not_cost_what_came_before(shelf, tmp_path):
    (tmp_path / "f.part").write_bytes(CONTENT[:100])
    shelf.content, shelf.ranges, shelf.media_type = CONFIRM, False, "text/html"
    with pytest.raises(UserError, match="web page"):
        get(shelf, tmp_path / "f", sha256=DIGEST)
    assert (tmp_path / "f.part").read_bytes() == CONTENT[:100]


def test_a_busy_server_is_asked_again(shelf, tmp_path):
    shelf.statuses = [503, 429]
    get(shelf, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT
    shelf.statuses = [503] * 3
    with pytest.raises(UserError, match=r"download failed after 3 attempts \(HTTP 503\)"):
        get(shelf, tmp_path / "g")
    assert len(shelf.requests) == 6


def test_a_refusal_is_final(shelf, tmp_path):
    shelf.statuses = [404]
    with pytest.raises(UserError, match=r"/file: the server responded with HTTP 404 Not Found"):
        get(shelf, tmp_path / "f")
    assert len(shelf.requests) == 1


def test_a_file_that_is_there_is_checked_and_not_fetched(shelf, tmp_path):
    path = tmp_path / "f"
    path.write_bytes(CONTENT)
    assert get(shelf, path, sha256=DIGEST)["size"] == len(CONTENT)
    with pytest.raises(UserError, match=r"f: expected SHA-256 .* delete it to download it again"):
        get(shelf, path, sha256="0" * 64)
    with pytest.raises(UserError, match=r"f: expected 3 bytes, not 524288; delete it"):
        get(shelf, path, size=3)
    assert path.read_bytes() == CONTENT
    assert shelf.requests == []


def test_without_a_network_one_sentence_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("hgrpo.games.fetch.FIRST_PAUSE_S", 0.001)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/"
        with pytest.raises(UserError, match=rf"^key: {url}: cannot connect .*check the network "):
            fetch(Source(url), tmp_path / "f", "key")
    assert names(tmp_path) == []


def test_the_table_has_addresses_and_whole_checksums():
    assert len({source.url for source in OFFICIAL.values()}) == len(OFFICIAL)
    for source in OFFICIAL.values():
        assert source.url.startswith("https://")
        assert (source.size is None) == (source.sha256 is None)
        assert source.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", source.sha256)
