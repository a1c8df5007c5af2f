"""Adopting an existing base model: whatever later stages need of it is checked here."""

import json
import os
import shutil
import struct

import pytest
import torch
from chat_models import END, chat_tokenizer, write_chat
from safetensors.torch import load_file, save_file
from stage_settings import run_command
from tokenizers import Tokenizer, models
from transformers import (
    AutoModelForCausalLM,
    BertConfig,
    LlamaConfig,
    MistralConfig,
    Qwen2Config,
    T5Config,
)

from hgrpo.agent.conversation import conversation_for
from hgrpo.agent.tokenizer import ACT, START, load_tokenizer
from hgrpo.agent.tokenizer import END as PLAIN_END
from hgrpo.base_model.digest import base_digest, companions_digest
from hgrpo.base_model.folder import ARCHIVE, open_base

SIZES = {
    "vocab_size": 5,
    "hidden_size": 4,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "intermediate_size": 6,
}
MATRIX, HEAD = "model.layers.0.mlp.up_proj.weight", "lm_head.weight"
EMBEDDINGS = "model.embed_tokens.weight"


def tensors_of(config) -> dict[str, torch.Tensor]:
    """Weights of a model: its norms as float32, all others as bfloat16."""
    state = AutoModelForCausalLM.from_config(config).state_dict()
    return {
        name: tensor.clone() if "norm" in name else tensor.bfloat16()
        for name, tensor in state.items()
        if not (config.tie_word_embeddings and name == HEAD)
    }


TENSORS = tensors_of(LlamaConfig(**SIZES))


@pytest.fixture
def source(tmp_path):
    """The folder of a small model, with the tokens of conversations."""
    folder = tmp_path / "source"
    folder.mkdir()
    LlamaConfig(**SIZES).save_pretrained(folder)
    save_file(TENSORS, folder / "model.safetensors", metadata={"format": "pt"})
    write_tokenizer(folder, [START, ACT, PLAIN_END])
    return folder


def write_tokenizer(folder, tokens):
    vocabulary = {token: i for i, token in enumerate(["a", *tokens])}
    Tokenizer(models.WordLevel(vocabulary, "a")).save(str(folder / "tokenizer.json"))


def split(folder):
    """Put the weights of a folder into two files with an index."""
    (folder / "model.safetensors").unlink()
    names = list(TENSORS)
    parts = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
    for name, tensors in parts.items():
        save_file({t: TENSORS[t] for t in tensors}, folder / name, metadata={"format": "pt"})
    named = {tensor: name for name, tensors in parts.items() for tensor in tensors}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": named}), encoding="utf-8")
    return index


@pytest.fixture
def command(tmp_path):
    def call(path, engine="torch", **more):
        model = {"name": "mine", **({"path": str(path)} if path else {}), **more}
        config = json.dumps({"model": model, "engine": {"kind": engine}})
        arguments = ["--config", config, "--expert", str(tmp_path), "--out", str(tmp_path / "base")]
        run_command("base", *arguments)
        return open_base(tmp_path / "base")

    return call


def test_a_folder_with_the_tokens_is_adopted(command, source, tmp_path):
    (source / "README.md").write_text("about it", encoding="utf-8")
    out = command(source)
    assert load_tokenizer(out).token_to_id(ACT) == 2
    weights = (source / "model.safetensors").read_bytes()
    assert (out / "model.safetensors").read_bytes() == weights
    assert json.loads((out / "summary.json").read_bytes()) == {
        "vocabulary": 4,
        # Embeddings and head, query and output, key and value, the MLP, three norms.
        "parameters": 2 * 5 * 4 + 2 * 4 * 4 + 2 * 2 * 4 + 3 * 4 * 6 + 3 * 4,
        "bytes": len(weights),
        "companions": companions_digest(source),
        "digest": base_digest(out),
    }
    beside = ["config.json", "model.safetensors", "summary.json", "tokenizer.json"]
    assert sorted(path.name for path in out.iterdir()) == beside
    written = {path.name for path in (tmp_path / "base").glob("[!.]*")}
    assert written == {ARCHIVE, "model.safetensors", "summary.json"}


def test_weights_in_one_file_are_linked_not_copied(command, source, tmp_path):
    # As the hub's cache keeps them.
    weights = source / "model.safetensors"
    blob = weights.rename(source / "blob")
    weights.symlink_to(blob)
    command(source)
    out = tmp_path / "base/model.safetensors"
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


def test_a_chat_model_is_adopted(command, source):
    write_chat(source)
    config = LlamaConfig(**SIZES | {"vocab_size": chat_tokenizer().get_vocab_size()})
    config.save_pretrained(source)
    save_file(tensors_of(config), source / "model.safetensors", metadata={"format": "pt"})
    conversation = conversation_for(command(source), "Be brief.")
    assert conversation.end_id == chat_tokenizer().token_to_id(END)


def test_a_token_without_an_embedding_is_named(command, source, capsys):
    tokenizer = load_tokenizer(source)
    tokenizer.add_special_tokens(["<more>"])
    tokenizer.save(str(source / "tokenizer.json"))
    command(source)
    tokenizer.add_tokens(["<most>"])
    tokenizer.save(str(source / "tokenizer.json"))
    expected = "tokenizer.json: '<most>' is token 5, but the model has only 5 embeddings"
    assert expected in refused(command, capsys, source)


def refused(command, capsys, path, **more) -> str:
    with pytest.raises(SystemExit) as stopped:
        command(path, **more)
    assert stopped.value.code == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    return message


def test_a_tokenizer_of_neither_format_is_refused(command, source, tmp_path, capsys):
    write_tokenizer(source, [START])
    message = refused(command, capsys, source)
    assert message.startswith(f"error: configs/models/mine.yaml: path: {source}: ")
    assert "no chat template" in message
    assert not (tmp_path / "base").exists()


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named(command, source, capsys, name):
    (source / name).unlink()
    message = refused(command, capsys, source)
    assert f"path: {source}: " in message and name in message


@pytest.mark.parametrize("name", ["pytorch_model.bin", "weights.pt"])
def test_pickled_weights_are_refused_by_name(command, source, capsys, name):
    (source / "model.safetensors").rename(source / name)
    assert f"path: {source}: {name} contains pickled weights" in refused(command, capsys, source)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ('{"auto_map": {"AutoModelForCausalLM": "its.Own"}}', "auto_map: models with custom code"),
        ('{"quantization_config": {"quant_method": "awq"}}', "quantization_config: training"),
        ("[]", "expected a mapping"),
    ],
)
def test_a_config_that_cannot_be_used_is_refused(command, source, capsys, config, expected):
    (source / "config.json").write_text(config, encoding="utf-8")
    assert f"path: {source}: config.json: {expected}" in refused(command, capsys, source)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", "git-lfs"),
        (struct.pack("<Q", 2) + b"[]", "invalid JSON in header"),
        (struct.pack("<Q", 2) + b"{}more", "file not fully covered"),
    ],
)
def test_damaged_weights_are_named(command, source, capsys, content, expected):
    (source / "model.safetensors").write_bytes(content)
    message = refused(command, capsys, source)
    assert f"{source / 'model.safetensors'}: not a complete safetensors file (" in message
    assert expected in message


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
        ('{"weight_map": ["a"]}', "the file is not a valid index of weights"),
        ('{"weight_map": {"a": "../model.safetensors"}}', "../model.safetensors: no such file"),
    ],
)
def test_a_damaged_index_is_named(command, source, capsys, index, expected):
    path = split(source)
    path.write_text(index, encoding="utf-8")
    assert f"{path}: {expected}" in refused(command, capsys, source)


def test_a_tensor_in_two_files_is_named(command, source, capsys):
    split(source)
    second = source / "model-2.safetensors"
    first = next(iter(TENSORS))
    save_file(load_file(second) | {first: TENSORS[first]}, second)
    assert f"tensor {first!r} is also in another file" in refused(command, capsys, source)


FAMILIES = [LlamaConfig, Qwen2Config]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("tied", "shard"), [(False, 300), (True, 10_000)])
def test_what_transformers_saved_is_adopted(command, source, family, tied, shard):
    (source / "model.safetensors").unlink()
    model = AutoModelForCausalLM.from_config(family(**SIZES, tie_word_embeddings=tied))
    model.save_pretrained(source, max_shard_size=shard)
    assert (source / "model.safetensors.index.json").exists() == (shard == 300)
    joined = load_file(command(source) / "model.safetensors")
    assert (HEAD in joined) != tied
    assert all(torch.equal(tensor, model.state_dict()[name]) for name, tensor in joined.items())


def write_model(folder, config, **changed):
    """Put a model into `folder`, with some tensors changed, or left out where None."""
    config.save_pretrained(folder)
    tensors = tensors_of(config) | changed
    stored = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize("family", FAMILIES)
def test_a_tied_head_may_be_there_or_not(command, source, family):
    tied = family(**SIZES, tie_word_embeddings=True)
    embeddings = torch.arange(20.0).view(5, 4)
    write_model(source, tied, **{EMBEDDINGS: embeddings, HEAD: embeddings.clone()})
    assert HEAD in load_file(command(source) / "model.safetensors")


def test_a_tied_head_that_differs_is_refused(command, source, capsys):
    tied = LlamaConfig(**SIZES, tie_word_embeddings=True)
    write_model(source, tied, **{HEAD: torch.zeros(5, 4)})
    message = refused(command, capsys, source)
    assert f"tensor '{HEAD}' differs from '{EMBEDDINGS}', but config.json sets `tie_" in message


WRONG = [
    ({MATRIX: None}, rf"tensor '{MATRIX}' is missing (1 of the "),
    ({HEAD: None}, rf"tensor '{HEAD}' is missing (1 of the "),
    ({MATRIX: torch.zeros(6, 5)}, f"'{MATRIX}' has shape [6, 5] and type F32; expected by"),
    ({"a": torch.zeros(1)}, "expected by config.json: no such tensor"),
    ({MATRIX: torch.zeros(6, 4, dtype=torch.int8)}, "has shape [6, 4] and type I8; expected by"),
]


@pytest.mark.parametrize(("changed", "expected"), WRONG)
def test_a_tensor_that_does_not_fit_is_named(command, source, capsys, changed, expected):
    write_model(source, LlamaConfig(**SIZES), **changed)
    assert expected in refused(command, capsys, source)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (LlamaConfig(**SIZES | {"vocab_size": 6}), "expected by config.json: [6, 4]"),
        (LlamaConfig(**SIZES | {"num_hidden_layers": 2}), "is missing (9 of the 21"),
        (BertConfig(), "config.json: model_type: 'bert' is not a causal language model"),
        (T5Config(), "config.json: model_type: 't5' is not a causal language model"),
    ],
)
def test_a_config_of_another_model_is_refused(command, source, capsys, config, expected):
    config.save_pretrained(source)
    assert expected in refused(command, capsys, source, engine="vllm")


UNPLAYED = [
    (MistralConfig(**SIZES), "model_type: 'mistral': the torch engine supports qwen2, llama"),
    (
        LlamaConfig(**SIZES, rope_parameters={"rope_type": "linear", "factor": 2.0}),
        "rope_type: 'linear': the torch engine supports plain RoPE only",
    ),
    (
        LlamaConfig(**SIZES, hidden_act="gelu"),
        "hidden_act: 'gelu': the torch engine supports silu only",
    ),
    (
        Qwen2Config(
            **SIZES,
            use_sliding_window=True,
            sliding_window=511,
            max_window_layers=0,
            max_position_embeddings=512,
        ),
        "sliding_window: 511 of 512 positions: the torch engine does not support sliding windows; "
        "set `max_length` to at most the size of the window, so that the window has no effect",
    ),
]
HINT = "; try `engine: {kind: vllm}` in the study\n"


@pytest.mark.parametrize(("config", "expected"), UNPLAYED)
def test_what_the_engine_cannot_play_is_refused_before_weights_are_read(
    command, source, tmp_path, capsys, config, expected
):
    write_model(source, config)
    assert (command(source, engine="vllm") / "model.safetensors").is_file()
    shutil.rmtree(tmp_path / "base")
    (source / "model.safetensors").write_bytes(b"not weights")
    message = refused(command, capsys, source)
    start = f"error: configs/models/mine.yaml: path: {source}: config.json: "
    assert message == start + expected + HINT
    assert not (tmp_path / "base").exists()


def test_a_window_that_no_conversation_fills_is_none(command, source):
    windows = {"use_sliding_window": True, "sliding_window": 64, "max_window_layers": 0}
    write_model(source, Qwen2Config(**SIZES, **windows))
    assert (command(source, max_length=64) / "model.safetensors").is_file()


@pytest.mark.parametrize(
    ("value", "dtype"), [(float("nan"), torch.float32), (float("inf"), torch.bfloat16)]
)
def test_values_that_are_not_finite_are_refused(command, source, capsys, value, dtype):
    broken = torch.zeros(6, 4, dtype=dtype)
    broken[5, 3] = value
    write_model(source, LlamaConfig(**SIZES), **{MATRIX: broken})
    assert f"{source / 'model.safetensors'}: tensor '{MATRIX}' has non-finite values" in (
        refused(command, capsys, source)
    )
