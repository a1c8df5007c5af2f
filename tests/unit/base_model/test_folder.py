"""The folder of a base: what the base stage wrote, or a plain model folder."""

import pytest

from hgrpo.archive import pack
from hgrpo.base_model.folder import ARCHIVE, open_base
from hgrpo.errors import UserError


@pytest.fixture
def base(tmp_path):
    """What the base stage writes: weights, summary, and companions in an archive."""
    source, folder = tmp_path / "source", tmp_path / "base"
    for each in (source, folder):
        each.mkdir()
    for name in ("config.json", "tokenizer.json"):
        (source / name).write_text(f"text of {name}", encoding="utf-8")
    pack(source, ["config.json", "tokenizer.json"], folder / ARCHIVE)
    for name in ("model.safetensors", "summary.json"):
        (folder / name).write_text(f"text of {name}", encoding="utf-8")
    return folder


def test_weights_companions_and_summary_lie_side_by_side(base):
    opened = open_base(base)
    assert {path.name: path.read_text(encoding="utf-8") for path in opened.iterdir()} == {
        name: f"text of {name}"
        for name in ("config.json", "tokenizer.json", "model.safetensors", "summary.json")
    }
    # The weights are gigabytes: they are not copied.
    assert (opened / "model.safetensors").samefile(base / "model.safetensors")
    assert open_base(base) == opened


def test_a_plain_model_folder_is_opened_as_it_is(base, tmp_path):
    assert open_base(tmp_path / "source") == tmp_path / "source"
    assert sorted(path.name for path in (tmp_path / "source").iterdir()) == [
        "config.json",
        "tokenizer.json",
    ]


@pytest.mark.parametrize("name", ["model.safetensors", "summary.json"])
def test_a_file_missing_beside_the_archive_is_named(base, name):
    (base / name).unlink()
    with pytest.raises(UserError, match=rf"base/{name}: missing, although {ARCHIVE} requires it"):
        open_base(base)


def test_damaged_companions_are_named(base):
    (base / ARCHIVE).write_bytes(b"not an archive")
    with pytest.raises(UserError, match=rf"base/{ARCHIVE}: damaged archive"):
        open_base(base)
