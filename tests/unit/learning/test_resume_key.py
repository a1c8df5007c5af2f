"""What a run that resumes must have in common with the one that stopped."""

import pytest

from hgrpo.errors import UserError
from hgrpo.learning.scratch import resume_key
from hgrpo.learning.set_up import RoundInputs


@pytest.fixture
def keyed(tmp_path):
    """The key of a round whose inputs lie in tmp_path."""
    for folder in ("assets", "base", "sft"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "model.safetensors").write_bytes(b"one")
    (tmp_path / "assets/panels.json").write_text("{}")
    folders = [tmp_path / name for name in ("assets", "base", "sft", "sft")]

    def key(**changes):
        return resume_key({"seed": 11, "code": "c"} | changes, RoundInputs(*folders).files())

    return key


@pytest.mark.parametrize(
    "name", ["base/model.safetensors", "sft/model.safetensors", "assets/panels.json"]
)
def test_another_input_is_another_round(keyed, tmp_path, name):
    before = keyed()
    assert keyed() == before
    (tmp_path / name).write_bytes(b"two")
    assert keyed() != before
    assert keyed(seed=12) != keyed()


def test_weights_with_their_hash_beside_them_are_not_read(keyed, tmp_path):
    summary = tmp_path / "base/summary.json"
    summary.write_text('{"bytes": 3, "sha256": "of one"}')
    before = keyed()
    (tmp_path / "base/model.safetensors").write_bytes(b"two")
    assert keyed() == before
    summary.write_text('{"bytes": 3, "sha256": "of two"}')
    assert keyed() != before
    # A summary of other weights does not count: these are read.
    (tmp_path / "base/model.safetensors").write_bytes(b"three")
    three = keyed()
    (tmp_path / "base/model.safetensors").write_bytes(b"seven")
    assert keyed() != three


@pytest.mark.parametrize("text", ['{"bytes": 3, "sha', "[" * 200_000, "null", '{"sha256": "a"}'])
def test_a_damaged_summary_is_named(keyed, tmp_path, text):
    summary = tmp_path / "base/summary.json"
    summary.write_text(text)
    with pytest.raises(UserError, match=f"{summary}: corrupted"):
        keyed()
