"""What export and import say before they touch results."""

import io
import json
import subprocess
import sys
import tarfile

import pytest

from hgrpo.cli import config, export, import_results
from hgrpo.errors import UserError

MANIFEST = {
    "format": 1,
    "study": "smoke",
    "methods": ["SFTOnly"],
    "seeds": [11],
    "rounds": 2,
    "made": {},
    "shared": {},
    "packages": {},
    "files": {},
}


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "start.tar"
    text = json.dumps(MANIFEST).encode()
    with tarfile.open(path, "w") as opened:
        head = tarfile.TarInfo("export.json")
        head.size = len(text)
        opened.addfile(head, io.BytesIO(text))
    return path


def call(monkeypatch, command, *words):
    monkeypatch.setattr(sys, "argv", ["command", *map(str, words)])
    command.main()


@pytest.mark.parametrize("given", ["study=bakeoff", "methods=flatGRPO", "seeds=23", "rounds=1"])
def test_an_import_of_something_else_than_the_archive_holds_is_refused(monkeypatch, archive, given):
    with pytest.raises(UserError) as refused:
        call(monkeypatch, import_results, archive, given)
    key, _, value = given.partition("=")
    held = {"study": "smoke", "methods": "SFTOnly", "seeds": "11", "rounds": "2"}[key]
    assert f"start.tar: holds {key}={held}, not {value}" in str(refused.value)


def test_the_archives_own_study_may_be_named(monkeypatch, archive, project, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").symlink_to(project / "configs")
    with pytest.raises(UserError) as refused:
        call(monkeypatch, import_results, archive, "study=smoke")
    assert "unknown key" not in str(refused.value)
    assert "SFTOnly, evaluate: only here" in str(refused.value)


@pytest.mark.parametrize(("command", "missing"), [(import_results, "archive"), (config, "study")])
def test_only_what_must_be_given_is_called_required(monkeypatch, command, missing):
    with pytest.raises(UserError, match=f"arguments are required: {missing}$"):
        call(monkeypatch, command)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["methods=SFTOnly"], "study bakeoff (no study= was given): assets: not finished"),
        (["methods=Nobody"], "study bakeoff (no study= was given): "),
        (["study=bakeoff", "methods=SFTOnly"], "assets: not finished"),
    ],
)
def test_export_says_that_it_looked_in_the_default_study(monkeypatch, project, given, said):
    monkeypatch.chdir(project)
    asked = []
    monkeypatch.setattr(export, "snakemake_summary", lambda words, _: asked.append(words) or "")
    with pytest.raises(UserError) as refused:
        call(monkeypatch, export, "--start", *given)
    assert str(refused.value).startswith(said)
    assert all("study=bakeoff" in words for words in asked)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("folder", "folder: this is a folder; a file was expected, such as --out share.tar"),
        ("old.tar", "old.tar: is there already; remove it, or name another file with --out"),
    ],
)
def test_export_writes_over_nothing(monkeypatch, project, tmp_path, name, said):
    monkeypatch.chdir(project)
    (tmp_path / "folder").mkdir()
    (tmp_path / "old.tar").write_text("mine", encoding="utf-8")
    with pytest.raises(UserError) as refused:
        call(monkeypatch, export, "study=smoke", "--out", tmp_path / name)
    assert str(refused.value) == f"{tmp_path}/{said}"
    assert (tmp_path / "old.tar").read_text(encoding="utf-8") == "mine"


def test_git_ignores_what_export_writes(project, tmp_path):
    (tmp_path / ".gitignore").write_bytes((project / ".gitignore").read_bytes())
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    name = "bakeoff-LLMJudge-seeds_11.tar"
    done = subprocess.run(["git", "check-ignore", name], cwd=tmp_path, check=False)
    assert done.returncode == 0
