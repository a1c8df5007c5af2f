"""Taking over an existing base model: all that later stages need of it is looked for here."""

import hashlib
import json
import os
import struct
import sys

import pytest
import torch
from chat_models import END, chat_tokenizer, write_chat
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models

from hgrpo.agent.layout import conversation_for
from hgrpo.agent.tokenizer import ACT, START, load_tokenizer
from hgrpo.agent.tokenizer import END as PLAIN_END
from hgrpo.cli import base
from hgrpo.cli.entry import run

TENSORS = {
    "a": torch.arange(6, dtype=torch.bfloat16).view(2, 3),
    "b": torch.tensor([0.5, -1.0, 2.0]),
    "c": torch.tensor([7], dtype=torch.int8),
    "d": torch.eye(2),
}


@pytest.fixture
def source(tmp_path):
    """A folder that looks like a model, with the tokens of conversations."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    save_file(TENSORS, folder / "model.safetensors", metadata={"format": "pt"})
    write_tokenizer(folder, [START, ACT, PLAIN_END])
    return folder


def write_tokenizer(folder, tokens):
    vocabulary = {token: i for i, token in enumerate(["a", *tokens])}
    Tokenizer(models.WordLevel(vocabulary, "a")).save(str(folder / "tokenizer.json"))


def split(folder):
    """Put the weights of a folder into two files with an index."""
    (folder / "model.safetensors").unlink()
    parts = {"model-1.safetensors": ("a", "c"), "model-2.safetensors": ("b", "d")}
    for name, tensors in parts.items():
        save_file({t: TENSORS[t] for t in tensors}, folder / name, metadata={"format": "pt"})
    named = {tensor: name for name, tensors in parts.items() for tensor in tensors}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": named}))
    return index


@pytest.fixture
def command(monkeypatch, tmp_path):
    def call(path, **more):
        config = json.dumps({"model": {"name": "mine", "path": str(path), **more}})
        given = ["--config", config, "--expert", str(tmp_path), "--out", str(tmp_path / "base")]
        monkeypatch.setattr(sys, "argv", ["base", *given])
        run(base.main)
        return tmp_path / "base"

    return call


def test_a_folder_with_the_tokens_is_taken_over(command, source):
    (source / "README.md").write_text("about it")
    out = command(source)
    assert load_tokenizer(out).token_to_id(ACT) == 2
    weights = (source / "model.safetensors").read_bytes()
    assert (out / "model.safetensors").read_bytes() == weights
    assert json.loads((out / "summary.json").read_text()) == {
        "vocabulary": 4,
        "parameters": 6 + 3 + 1 + 4,
        "bytes": len(weights),
        "sha256": hashlib.sha256(weights).hexdigest(),
    }
    assert sorted(path.name for path in out.iterdir()) == [
        "config.json",
        "model.safetensors",
        "summary.json",
        "tokenizer.json",
    ]


def test_weights_in_one_file_are_linked_not_copied(command, source):
    # As the hub's cache keeps them.
    weights = source / "model.safetensors"
    blob = weights.rename(source / "blob")
    weights.symlink_to(blob)
    out = command(source) / "model.safetensors"
    assert not out.is_symlink()
    assert out.samefile(blob)


def test_weights_are_copied_where_no_link_is_possible(command, source, monkeypatch):
    def refused(*_):
        raise OSError("another file system")

    monkeypatch.setattr(os, "link", refused)
    out = command(source) / "model.safetensors"
    assert not out.samefile(source / "model.safetensors")
    assert out.read_bytes() == (source / "model.safetensors").read_bytes()


def test_weights_in_several_files_become_one(command, source):
    split(source)
    out = command(source) / "model.safetensors"
    joined = load_file(out)
    assert joined.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert joined[name].dtype == tensor.dtype
        assert torch.equal(joined[name], tensor)
    (length,) = struct.unpack("<Q", out.read_bytes()[:8])
    assert length % 8 == 0
    assert json.loads(out.read_bytes()[8 : 8 + length])["__metadata__"] == {"format": "pt"}


def test_a_chat_model_is_taken_over(command, source):
    write_chat(source)
    conversation = conversation_for(command(source), "Be brief.")
    assert conversation.end_id == chat_tokenizer().token_to_id(END)


def test_a_path_may_hold_variables(command, source, monkeypatch, capsys):
    monkeypatch.setenv("HGRPO_TEST_MODELS", str(source.parent))
    assert (command("$HGRPO_TEST_MODELS/source") / "config.json").is_file()
    monkeypatch.delenv("HGRPO_TEST_MODELS")
    said = refused(command, capsys, "$HGRPO_TEST_MODELS/source")
    assert "mine.yaml: path: $HGRPO_TEST_MODELS/source: the environment variable is not" in said


def refused(command, capsys, path, **more) -> str:
    with pytest.raises(SystemExit) as stopped:
        command(path, **more)
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_a_tokenizer_of_neither_layout_is_refused(command, source, tmp_path, capsys):
    write_tokenizer(source, [START])
    said = refused(command, capsys, source)
    assert said.startswith(f"error: configs/models/mine.yaml: path: {source}: ")
    assert "no chat template" in said
    assert not (tmp_path / "base").exists()


def test_a_chat_template_that_rewrites_is_refused(command, source, capsys):
    write_chat(source, "{% for message in messages %}{{ message.content | trim }}{% endfor %}")
    said = refused(command, capsys, source)
    assert f"{source / 'tokenizer_config.json'}: the chat template does not" in said


def test_a_system_text_without_system_messages_is_refused(command, source, capsys):
    assert "system: " in refused(command, capsys, source, system="Be brief.")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(command, source, capsys, name):
    (source / name).unlink()
    assert f"path: {source}: no {name} there" in refused(command, capsys, source)


def test_a_name_on_the_hub_is_told_from_a_folder(command, capsys):
    said = refused(command, capsys, "Qwen/Qwen2.5-0.5B")
    assert (
        "path: Qwen/Qwen2.5-0.5B: no config.json there" in said and "not a name on the hub" in said
    )


@pytest.mark.parametrize("name", ["pytorch_model.bin", "consolidated.00.pth", "weights.pt"])
def test_pickled_weights_are_refused_by_name(command, source, capsys, name):
    (source / "model.safetensors").rename(source / name)
    assert f"path: {source}: {name} holds pickled weights" in refused(command, capsys, source)


def test_pickles_beside_weights_are_left_where_they_are(command, source):
    (source / "training_args.bin").write_bytes(b"pickled")
    assert not (command(source) / "training_args.bin").exists()


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ('{"auto_map": {"AutoModelForCausalLM": "its.Own"}}', "auto_map: the model brings code"),
        ('{"quantization_config": {"quant_method": "awq"}}', "quantization_config: the weights"),
        ("{", "corrupted"),
        ("[]", "a mapping was expected"),
    ],
)
def test_a_config_that_cannot_be_had_is_refused(command, source, capsys, config, expected):
    (source / "config.json").write_text(config)
    assert f"path: {source}: config.json: {expected}" in refused(command, capsys, source)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "not a safetensors file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", "git-lfs"),
        (struct.pack("<Q", 2) + b"[]", "not a safetensors file"),
        (struct.pack("<Q", 2) + b"{", "not a safetensors file"),
        (struct.pack("<Q", 2) + b"{}more", "14 bytes, but its header tells of 10"),
    ],
)
def test_damaged_weights_are_named(command, source, capsys, content, expected):
    (source / "model.safetensors").write_bytes(content)
    said = refused(command, capsys, source)
    assert f"{source / 'model.safetensors'}: " in said and expected in said


def test_weights_that_are_cut_off_are_named(command, source, capsys):
    index = split(source)
    second = source / "model-2.safetensors"
    second.write_bytes(second.read_bytes()[:-1])
    assert f"{second}: " in refused(command, capsys, source)
    second.unlink()
    assert f"{index}: model-2.safetensors: no such file" in refused(command, capsys, source)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("{", "not an index of weights"),
        ('{"weight_map": ["a"]}', "not an index of weights"),
        ('{"weight_map": {"a": "../model.safetensors"}}', "../model.safetensors: no such file"),
        ('{"weight_map": {"a": 1}}', "not an index of weights"),
    ],
)
def test_a_damaged_index_is_named(command, source, capsys, index, expected):
    path = split(source)
    path.write_text(index)
    assert f"{path}: {expected}" in refused(command, capsys, source)


def test_a_tensor_in_two_files_is_named(command, source, capsys):
    split(source)
    save_file({"a": TENSORS["b"]}, source / "model-2.safetensors")
    assert "tensor 'a' is in another file too" in refused(command, capsys, source)
