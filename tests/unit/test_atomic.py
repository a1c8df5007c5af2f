"""Outputs appear whole or not at all, and leave nothing behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hgrpo.atomic import atomic_file, atomic_folder


def test_a_folder_appears_when_the_block_ends(tmp_path):
    target = tmp_path / "deep" / "out"
    with atomic_folder(target) as scratch:
        (scratch / "a").write_text("1", encoding="utf-8")
        assert not target.exists()
    assert (target / "a").read_text(encoding="utf-8") == "1"
    assert os.listdir(target.parent) == ["out"]


def test_a_folder_replaces_the_old_one_whole(tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    (target / "stale").touch()
    with atomic_folder(target) as scratch:
        (scratch / "fresh").touch()
    assert os.listdir(target) == ["fresh"]


@pytest.mark.parametrize("kind", [atomic_folder, atomic_file])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_error_leaves_what_was_there(tmp_path, kind, error):
    target = tmp_path / "out"
    with kind(target) as scratch:
        if kind is atomic_folder:
            (scratch / "a").write_text("old", encoding="utf-8")
        else:
            scratch.write_text("old", encoding="utf-8")
    with pytest.raises(type(error)), kind(target) as scratch:
        (scratch / "a" if kind is atomic_folder else scratch).write_text("half", encoding="utf-8")
        raise error
    assert (target / "a" if kind is atomic_folder else target).read_text(encoding="utf-8") == "old"
    assert os.listdir(tmp_path) == ["out"]


def test_a_killed_process_leaves_nothing_at_the_target(tmp_path):
    code = (
        "import os, sys, pathlib\nfrom hgrpo.atomic import atomic_folder\n"
        "with atomic_folder(pathlib.Path(sys.argv[1])) as scratch:\n"
        "    (scratch / 'a').write_text('half')\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    target = tmp_path / "out"
    done = subprocess.run([sys.executable, "-c", code, str(target)], check=False)
    assert done.returncode == -9
    assert not target.exists()
    # It stays until the next, which knows that nobody holds it any more.
    (left,) = tmp_path.iterdir()
    assert (left / "a").read_text(encoding="utf-8") == "half"
    with atomic_folder(target) as scratch:
        assert not left.exists()
        (scratch / "a").write_text("whole", encoding="utf-8")
    assert os.listdir(tmp_path) == ["out"]


def test_what_a_living_process_writes_is_left_to_it(tmp_path):
    target = tmp_path / "out"
    code = (
        "import sys, pathlib\nfrom hgrpo.atomic import atomic_folder\n"
        "with atomic_folder(pathlib.Path(sys.argv[1])) as scratch:\n"
        "    print(scratch, flush=True)\n"
        "    input()\n"
    )
    command = [sys.executable, "-c", code, str(target)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as other:
        theirs = Path(other.stdout.readline().strip())
        with atomic_folder(target) as scratch:
            (scratch / "a").touch()
        assert theirs.is_dir()
        other.communicate("\n")
    assert other.returncode == 0
    assert os.listdir(tmp_path) == ["out"]
