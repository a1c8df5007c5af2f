"""Taking over an existing base model: all that later stages need of it is looked for here."""

import json
import sys

import pytest
from tokenizers import Tokenizer, models

from hgrpo.agent.tokenizer import ACT, END, START, load_tokenizer
from hgrpo.cli import base
from hgrpo.cli.entry import run


@pytest.fixture
def source(tmp_path):
    """A folder that looks like a model, with the tokens of conversations."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    write_tokenizer(folder, [START, ACT, END])
    return folder


def write_tokenizer(folder, tokens):
    vocabulary = {token: i for i, token in enumerate(["a", *tokens])}
    Tokenizer(models.WordLevel(vocabulary, "a")).save(str(folder / "tokenizer.json"))


@pytest.fixture
def command(monkeypatch, tmp_path):
    def call(path):
        config = json.dumps({"model": {"name": "mine", "path": str(path)}})
        given = ["--config", config, "--expert", str(tmp_path), "--out", str(tmp_path / "base")]
        monkeypatch.setattr(sys, "argv", ["base", *given])
        run(base.main)
        return tmp_path / "base"

    return call


def test_a_folder_with_the_tokens_is_taken_over(command, source):
    out = command(source)
    assert load_tokenizer(out).token_to_id(ACT) == 2
    assert (out / "model.safetensors").read_bytes() == b"weights"


def refused(command, capsys, path) -> str:
    with pytest.raises(SystemExit) as stopped:
        command(path)
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_a_tokenizer_without_the_tokens_is_refused(command, source, tmp_path, capsys):
    write_tokenizer(source, [START])
    said = refused(command, capsys, source)
    assert said.startswith(f"error: configs/models/mine.yaml: path: {source}: ")
    assert "no token <act> </act>" in said
    assert not (tmp_path / "base").exists()


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(command, source, capsys, name):
    (source / name).unlink()
    assert f"path: {source}: no {name} there" in refused(command, capsys, source)


def test_a_name_on_the_hub_is_told_from_a_folder(command, capsys):
    said = refused(command, capsys, "Qwen/Qwen2.5-0.5B")
    assert (
        "path: Qwen/Qwen2.5-0.5B: no config.json there" in said and "not a name on the hub" in said
    )
