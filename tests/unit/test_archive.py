"""Files of a stage as one archive, and the folder that its readers share."""

import fcntl
import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import pytest

from hgrpo import archive as module
from hgrpo.archive import pack, unpacked
from hgrpo.errors import UserError


@pytest.fixture
def packed(tmp_path):
    """An archive of a file and of a folder with two files."""
    source = tmp_path / "source"
    (source / "games/one").mkdir(parents=True)
    (source / "games/one/game").write_text("open door 1", encoding="utf-8")
    (source / "games/two").write_text("go", encoding="utf-8")
    (source / "panels.json").write_text("{}", encoding="utf-8")
    (source / "left out").write_text("no", encoding="utf-8")
    (tmp_path / "out").mkdir()
    target = tmp_path / "out/tasks.tar.gz"
    pack(source, ["panels.json", "games"], target)
    return target


def files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


PACKED = {"games/one/game": "open door 1", "games/two": "go", "panels.json": "{}"}


def test_what_was_packed_comes_back(packed):
    assert files(unpacked(packed)) == PACKED


def test_the_same_files_are_the_same_bytes(packed, tmp_path):
    source, again = tmp_path / "source", tmp_path / "again"
    # Written in another order, at another time, with other permissions.
    (again / "games/one").mkdir(parents=True)
    for name in ("games/two", "panels.json", "games/one/game"):
        (again / name).write_bytes((source / name).read_bytes())
        os.utime(again / name, (1, 1))
        (again / name).chmod(0o600)
    pack(again, ["games", "panels.json"], tmp_path / "again.tar")
    assert (tmp_path / "again.tar").read_bytes() == packed.read_bytes()
    (again / "games/two").write_text("stay", encoding="utf-8")
    pack(again, ["games", "panels.json"], tmp_path / "again.tar")
    assert (tmp_path / "again.tar").read_bytes() != packed.read_bytes()


def test_readers_share_one_folder(packed, monkeypatch):
    folder = unpacked(packed)
    monkeypatch.setattr(module, "_extract", None)
    assert unpacked(packed) == folder
    assert folder.parent.parent == packed.parent


def test_a_reader_waits_for_the_one_that_unpacks(packed):
    home = packed.parent / ".tasks"
    home.mkdir()
    folders = []
    with (home / "lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        reader = threading.Thread(target=lambda: folders.append(unpacked(packed)))
        reader.start()
        reader.join(0.2)
        assert reader.is_alive() and not folders
    reader.join(30)
    assert files(folders[0]) == PACKED


def test_another_archive_of_the_name_is_unpacked_anew_and_the_old_folder_goes(packed, tmp_path):
    before = unpacked(packed)
    (tmp_path / "source/panels.json").write_text('{"train": []}', encoding="utf-8")
    pack(tmp_path / "source", ["panels.json"], packed)
    after = unpacked(packed)
    assert after != before and not before.exists()
    assert files(after) == {"panels.json": '{"train": []}'}


def test_a_kill_while_unpacking_leaves_no_half_folder(packed):
    script = (
        "import os, sys\nfrom hgrpo import archive\n"
        "def half(source, folder):\n"
        "    (folder / 'panels.json').write_text('{')\n"
        "    os._exit(9)\n"
        "archive._extract = half\narchive.unpacked(sys.argv[1])\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(packed)], check=False)
    assert killed.returncode == 9
    assert files(unpacked(packed)) == PACKED
    assert [path.name for path in (packed.parent / ".tasks").iterdir() if path.is_dir()] == [
        unpacked(packed).name
    ]


@pytest.mark.parametrize(
    "member",
    [
        tarfile.TarInfo("../outside"),
        tarfile.TarInfo("/../outside"),
        tarfile.TarInfo("games/../../outside"),
    ],
    ids=lambda member: member.name,
)
def test_a_path_outside_is_refused(tmp_path, member):
    target = tmp_path / "in/tasks.tar.gz"
    target.parent.mkdir()
    with tarfile.open(target, "w:gz") as opened:
        member.size = 3
        opened.addfile(member, io.BytesIO(b"bad"))
    with pytest.raises(UserError, match=r"tasks\.tar\.gz: damaged archive \(.*outside"):
        unpacked(target)
    assert not list(tmp_path.rglob("outside"))
    assert not list(tmp_path.rglob("tasks-*"))


def test_a_link_that_leads_outside_is_refused(tmp_path):
    link = tarfile.TarInfo("games")
    link.type, link.linkname = tarfile.SYMTYPE, "../../../outside"
    with tarfile.open(tmp_path / "tasks.tar.gz", "w:gz") as opened:
        opened.addfile(link)
    with pytest.raises(UserError, match=r"tasks\.tar\.gz: damaged archive"):
        unpacked(tmp_path / "tasks.tar.gz")


@pytest.mark.parametrize("blocks", range(8))
def test_a_tar_that_is_cut_off_is_named(packed, blocks):
    # Five headers and three contents, a block of 512 bytes each; then the end.
    content = gzip.decompress(packed.read_bytes())
    packed.write_bytes(gzip.compress(content[: blocks * 512 + 100 * (blocks % 2)]))
    with pytest.raises(UserError, match=r"tasks\.tar\.gz: damaged archive .* delete it and run"):
        unpacked(packed)
    assert not list(packed.parent.rglob("tasks-*"))


@pytest.mark.parametrize("place", [0, 20, 60, -6, "cut"])
def test_a_changed_byte_or_a_cut_is_named(packed, place):
    content = bytearray(packed.read_bytes())
    if place == "cut":
        del content[len(content) // 2 :]
    else:
        content[place] ^= 0x55
    packed.write_bytes(content)
    with pytest.raises(UserError, match=r"tasks\.tar\.gz: damaged archive"):
        unpacked(packed)
    assert not list(packed.parent.rglob("tasks-*"))


def test_a_damaged_header_is_named_and_does_not_end_the_archive(packed):
    content = gzip.decompress(packed.read_bytes())
    packed.write_bytes(gzip.compress(content.replace(b"games/two", b"Games/two", 1)))
    with pytest.raises(UserError, match=r"tasks\.tar\.gz: damaged archive .*header"):
        unpacked(packed)


def test_files_beside_the_archive_are_linked_and_move_with_the_results(packed, tmp_path):
    (packed.parent / "weights").write_text("of the model", encoding="utf-8")
    folder = unpacked(packed, beside=["weights"])
    assert files(folder) == PACKED | {"weights": "of the model"}
    (packed.parent).rename(tmp_path / "moved")
    shutil.rmtree(tmp_path / "source")
    moved = unpacked(tmp_path / "moved/tasks.tar.gz", beside=["weights"])
    assert files(moved) == PACKED | {"weights": "of the model"}


@pytest.mark.parametrize("error", [PermissionError(13, "denied"), OSError(30, "read-only")])
def test_results_that_cannot_be_written_are_unpacked_in_a_temporary_folder(
    packed, tmp_path, monkeypatch, error
):
    make, temporary = Path.mkdir, tmp_path / "temporary"

    def refuse(self, *args, **more):
        if self.is_relative_to(packed.parent):
            raise error
        make(self, *args, **more)

    monkeypatch.setattr(module.tempfile, "gettempdir", lambda: str(temporary))
    monkeypatch.setattr(Path, "mkdir", refuse)
    folder = unpacked(packed)
    assert files(folder) == PACKED
    assert folder.is_relative_to(temporary) and unpacked(packed) == folder
    # Another study has an archive of this name, too.
    other = packed.parent / "other/tasks.tar.gz"
    monkeypatch.undo()
    other.parent.mkdir()
    shutil.copy2(packed, other)
    monkeypatch.setattr(module.tempfile, "gettempdir", lambda: str(temporary))
    monkeypatch.setattr(Path, "mkdir", refuse)
    assert unpacked(other) != folder
    assert files(unpacked(other)) == files(folder) == PACKED
