"""What a run that resumes must have in common with the one that stopped."""

import json

import pytest

from hgrpo.learning.checkpoints import resume_key
from hgrpo.learning.set_up import RoundInputs


@pytest.fixture
def keyed(tmp_path):
    """The key of a round whose inputs lie in tmp_path; its base has no summary."""
    for folder in ("assets", "base", "sft", "rl"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "model.safetensors").write_bytes(b"one")
    (tmp_path / "base/config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "assets/panels.json").write_text("{}", encoding="utf-8")
    (tmp_path / "rl/critic.safetensors").write_bytes(b"one")
    folders = [tmp_path / name for name in ("base", "sft", "sft")]
    critic = tmp_path / "rl/critic.safetensors"
    inputs = RoundInputs(
        tmp_path / "assets/panels.json", tmp_path / "assets", *folders, critic=critic
    )

    def key(**changes):
        return resume_key({"seed": 11, "code": "c"} | changes, inputs.base, inputs.files())

    return key


@pytest.mark.parametrize(
    "name",
    [
        "base/model.safetensors",
        "base/config.json",
        "sft/model.safetensors",
        "assets/panels.json",
        "rl/critic.safetensors",
    ],
)
def test_another_input_is_another_round(keyed, tmp_path, name):
    before = keyed()
    assert keyed() == before
    (tmp_path / name).write_bytes(b"two")
    assert keyed() != before
    assert keyed(seed=12) != keyed()


def summarise(base, digest):
    summary = {"digest": digest, "companions": "of beside", "bytes": 3}
    (base / "summary.json").write_text(json.dumps(summary), encoding="utf-8")


def test_a_base_with_a_summary_counts_by_its_digest_and_is_not_read(keyed, tmp_path):
    summarise(tmp_path / "base", "of one")
    before = keyed()
    (tmp_path / "base/model.safetensors").write_bytes(b"two")
    assert keyed() == before
    summarise(tmp_path / "base", "of two")
    assert keyed() != before
