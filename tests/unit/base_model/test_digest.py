"""One digest of a base: what changes it, and what tells that a user's model changed in place."""

import hashlib
import json
import os

import pytest
import torch
from safetensors.torch import save_file

from hgrpo.agent.tokenizer import load_tokenizer
from hgrpo.base_model.digest import base_digest, companions_digest, source_digest, write_summary
from hgrpo.base_model.folder import companions
from hgrpo.base_model.make import build
from hgrpo.base_model.settings import TinyModel
from hgrpo.errors import UserError
from hgrpo.games.environment import PLAIN


@pytest.fixture
def base(tmp_path):
    """The folder of a base, summary included."""
    folder = tmp_path / "base"
    folder.mkdir()
    for name in ("tokenizer.json", "config.json"):
        (folder / name).write_text(name, encoding="utf-8")
    save_file({"a": torch.ones(2, 3), "b": torch.ones(4)}, folder / "model.safetensors")
    write_summary(folder, 7, more="than that")
    return folder


def test_a_summary_describes_the_whole_base(base):
    weights = (base / "model.safetensors").read_bytes()
    hashes = "".join(
        f"{name}\0{hashlib.sha256(name.encode()).hexdigest()}\n"
        for name in ("config.json", "tokenizer.json")
    )
    beside = hashlib.sha256(hashes.encode()).hexdigest()[:16]
    both = f"{beside}\0{hashlib.sha256(weights).hexdigest()}"
    assert json.loads((base / "summary.json").read_bytes()) == {
        "vocabulary": 7,
        "parameters": 2 * 3 + 4,
        "bytes": len(weights),
        "companions": beside,
        "digest": hashlib.sha256(both.encode()).hexdigest()[:16],
        "more": "than that",
    }


@pytest.mark.parametrize("name", ["config.json", "chat_template.jinja", "model.safetensors"])
def test_any_part_changes_the_digest(base, name):
    before = base_digest(base)
    if name == "model.safetensors":
        save_file({"a": torch.zeros(2, 3), "b": torch.ones(4)}, base / name)
    else:
        (base / name).write_text("another", encoding="utf-8")
    # It is recorded, and nothing is hashed to read it.
    assert base_digest(base) == before
    write_summary(base, 7)
    assert base_digest(base) != before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "the file is missing; run the base stage again"),
        ("[" * 200_000, "the file is damaged (RecursionError"),
        ("{}", "the file is damaged (KeyError: 'digest')"),
    ],
)
def test_a_damaged_summary_is_named(base, text, expected):
    summary = base / "summary.json"
    summary.unlink() if text is None else summary.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        base_digest(base)
    assert str(caught.value).startswith(f"{summary}: {expected}")


def test_weights_of_another_size_than_recorded_are_named(base):
    weights = base / "model.safetensors"
    os.truncate(weights, weights.stat().st_size - 1)
    with pytest.raises(
        UserError,
        match=rf"{weights}: the file has [\d,]+ bytes, but according to summary\.json in",
    ):
        base_digest(base)


def test_a_source_that_is_gone_is_what_was_adopted(base, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for path in companions(base):
        (source / path.name).write_bytes(path.read_bytes())
    weights = source / "model.safetensors"
    weights.write_bytes(b"weights are not read")
    before = source_digest(str(source), base)
    assert before == companions_digest(source)
    weights.unlink()
    (source / "config.json").write_text("of a model that is half gone", encoding="utf-8")
    assert source_digest(str(source), base) == before
    # As a store keeps it, with the companions in an archive.
    for path in companions(base):
        path.unlink()
    assert source_digest(str(source), base) == before
    assert source_digest("$HGRPO_NOT_SET", base) == before
    weights.write_bytes(b"weights")
    assert source_digest(str(source), base) != before


def test_a_tiny_model_is_built_with_its_summary(tmp_path):
    settings = TinyModel(hidden_size=8, layers=1, heads=1, kv_heads=1, intermediate_size=8)
    settings = settings.model_copy(update={"max_vocab": 270, "pretrain_trajectories": 1})
    rows = [{"loss": 2.0}, {"loss": 1.0}]
    for name, seed, pretrain in (("a", 0, None), ("b", 0, lambda _: rows), ("c", 1, None)):
        (tmp_path / name).mkdir()
        build(settings, ["go to desk 1"] * 3, PLAIN, seed, tmp_path / name, pretrain)
    summary = json.loads((tmp_path / "b/summary.json").read_bytes())
    assert (summary["pretrain_steps"], summary["pretrain_loss"]) == (2, 1.0)
    vocabulary = load_tokenizer(tmp_path / "a").get_vocab_size()
    assert summary["vocabulary"] == vocabulary
    # Tied embeddings; four attention matrices, three biases; the MLP; three norms.
    assert summary["parameters"] == vocabulary * 8 + 4 * 64 + 3 * 8 + 3 * 64 + 3 * 8
    assert base_digest(tmp_path / "a") == base_digest(tmp_path / "b")
    assert base_digest(tmp_path / "a") != base_digest(tmp_path / "c")
