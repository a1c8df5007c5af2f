"""The meanings of modules that are kept from one process to the next."""

import sys

import pytest

from hgrpo.workflow.code_meaning import meaning
from hgrpo.workflow.kept_meanings import KeptMeanings

ONE, TWO = b"import a\n\n\ndef f():\n    from .b import c, d\n", b"import z\n"


def read(package, source):
    """The meaning of a source in a new process, and whether it had to be read."""
    kept, made = KeptMeanings(package), []

    def make():
        made.append(source)
        return meaning(source)

    found = kept.get("toy.module factory", source, make)
    kept.save()
    return found, bool(made)


@pytest.fixture
def writing(monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


def test_a_meaning_is_made_once_for_each_source(writing, tmp_path):
    assert read(tmp_path, ONE) == (meaning(ONE), True)
    assert read(tmp_path, ONE) == (meaning(ONE), False)
    assert meaning(ONE)[1:] == ([[0, "a", []]], [[1, "b", ["c", "d"]]])
    assert read(tmp_path, TWO) == (meaning(TWO), True)
    # The file holds one meaning for a name, so it does not grow with every edit.
    assert read(tmp_path, ONE)[1]


@pytest.mark.parametrize("damage", ["", "[1, 2]", '{"toy.module factory": 1}', "\0"])
def test_a_damaged_file_is_made_anew(writing, tmp_path, damage):
    read(tmp_path, ONE)
    (path,) = tmp_path.glob("__pycache__/*")
    path.write_text(damage, encoding="utf-8")
    assert read(tmp_path, ONE) == (meaning(ONE), True)
    assert read(tmp_path, ONE) == (meaning(ONE), False)


def test_a_python_that_keeps_no_compiled_modules_keeps_no_meanings(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    read(tmp_path, ONE)
    assert not list(tmp_path.iterdir())
