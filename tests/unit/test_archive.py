"""Archives that stages hand on: their bytes, their folders, and what is refused."""

import io
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from hgrpo import archive as module
from hgrpo.archive import pack, unpacked
from hgrpo.errors import UserError


@pytest.fixture
def results(tmp_path):
    """A folder with an archive of a file and a folder, and a file beside the archive."""
    made = tmp_path / "made"
    (made / "games/train").mkdir(parents=True)
    (made / "games/train/one").write_text("game")
    (made / "list").write_text("one")
    (made / "left out").write_text("")
    folder = tmp_path / "results"
    folder.mkdir()
    pack(made, ["list", "games"], folder / "tasks.tar")
    (folder / "weights").write_text("beside")
    return folder


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_same_files_give_the_same_bytes(results, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "made", other)
    os.utime(other / "list", (1e9, 1e9))
    (other / "list").chmod(0o600)
    pack(other, ["games", "list"], tmp_path / "again.tar")
    assert (tmp_path / "again.tar").read_bytes() == (results / "tasks.tar").read_bytes()


def test_what_was_packed_comes_back_and_is_unpacked_once(results):
    folder = unpacked(results / "tasks.tar", beside=["weights"])
    assert files(folder) == {"games/train/one": "game", "list": "one", "weights": "beside"}
    (folder / "list").write_text("touched")
    assert files(unpacked(results / "tasks.tar"))["list"] == "touched"


def test_another_archive_in_its_place_is_unpacked_anew(results, tmp_path):
    before = unpacked(results / "tasks.tar")
    (tmp_path / "made/list").write_text("two")
    pack(tmp_path / "made", ["list"], results / "tasks.tar")
    assert files(unpacked(results / "tasks.tar")) == {"list": "two"}
    assert not before.exists()


def test_results_that_were_moved_still_open(results, tmp_path):
    unpacked(results / "tasks.tar", beside=["weights"])
    moved = results.rename(tmp_path / "moved")
    folder = unpacked(moved / "tasks.tar", beside=["weights"])
    assert files(folder)["weights"] == "beside"


def test_archives_of_others_are_unpacked_into_folders_of_their_own(results, tmp_path, monkeypatch):
    """As root, tests may write everywhere: the folder beside the archive is refused by hand."""
    copy = tmp_path / "copy"
    shutil.copytree(results, copy)
    monkeypatch.setattr(module.tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    unpack = module._unpacked

    def refused(archive, folder, beside):
        if folder.is_relative_to(archive.parent):
            raise PermissionError(folder)
        return unpack(archive, folder, beside)

    monkeypatch.setattr(module, "_unpacked", refused)
    one, two = (unpacked(home / "tasks.tar", beside=["weights"]) for home in (results, copy))
    assert one != two and files(one) == files(two)
    assert one.is_relative_to(tmp_path / "tmp")
    assert unpacked(results / "tasks.tar", beside=["weights"]) == one


def test_mistakes_are_named(results, tmp_path):
    with pytest.raises(UserError, match=r"none\.tar: missing; run the stage"):
        unpacked(results / "none.tar")
    with pytest.raises(UserError, match=r"nothing: missing; it belongs to tasks\.tar"):
        unpacked(results / "tasks.tar", beside=["nothing"])
    whole = (results / "tasks.tar").read_bytes()
    for content in (b"", b"no archive", whole[:700], whole[:1024]):
        (results / "tasks.tar").write_bytes(content)
        with pytest.raises(UserError, match=r"tasks\.tar: damaged archive \("):
            unpacked(results / "tasks.tar")


@pytest.mark.parametrize(
    "name", ["../outside", "/outside", "games/../../outside", "link", "device"]
)
def test_nothing_is_written_outside_the_folder(tmp_path, name):
    member = tarfile.TarInfo(name)
    content = io.BytesIO(b"bad")
    if name == "link":
        member.type, member.linkname = tarfile.SYMTYPE, "../../../outside"
    elif name == "device":
        member.type = tarfile.CHRTYPE
    else:
        member.size = 3
    home = tmp_path / "home"
    home.mkdir()
    with tarfile.open(home / "tasks.tar", "w") as opened:
        opened.addfile(member, content)
    if name == "/outside":  # the leading slash is dropped
        assert files(unpacked(home / "tasks.tar")) == {"outside": "bad"}
    else:
        with pytest.raises(UserError, match=r"tasks\.tar: damaged archive"):
            unpacked(home / "tasks.tar")
    assert not list(tmp_path.glob("outside")) and not Path("/outside").exists()
