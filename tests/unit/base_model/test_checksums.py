"""Weights and training state that are not what was written: named, before anything is done."""

import hashlib
import json
import shutil
import struct
import zipfile

import pytest
import torch
from places import PROJECT
from safetensors import safe_open
from safetensors.torch import load_file, save, save_file
from stage_settings import run_command, stage_settings
from tiny_policy import make_policy

from hgrpo.archive import pack
from hgrpo.base_model.safetensors_file import check_checksum, write_with_checksum
from hgrpo.credit.turnrd.model import build_model, load_model, save_model
from hgrpo.credit.turnrd.settings import ModelSettings, Settings
from hgrpo.errors import UserError
from hgrpo.games.base import Task
from hgrpo.games.panels import SPLITS
from hgrpo.learning.checkpoints import Checkpoints, read_state, write_state
from hgrpo.learning.scratch import job_scratch
from hgrpo.learning.update import Learner
from hgrpo.policy.load import load_player, load_policy
from hgrpo.study.study import load_study

TENSORS = {"b": torch.arange(6.0).view(2, 3), "a": torch.tensor([1.5, -2.0], dtype=torch.bfloat16)}
WEIGHTS = {"lora": "adapter_model.safetensors", "full": "model.safetensors"}


def flip(path, at=None):
    """Turn one bit of a file over; in the middle of its second half unless told where."""
    content = bytearray(path.read_bytes())
    content[len(content) * 3 // 4 if at is None else at] ^= 1
    path.write_bytes(content)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "weights.safetensors"
    write_with_checksum(save(TENSORS, metadata={"format": "pt"}), path)
    return path


def test_others_read_a_file_with_a_checksum(file):
    for name, tensor in load_file(file).items():
        assert torch.equal(tensor, TENSORS[name])
    with safe_open(file, "pt") as opened:
        # What transformers, PEFT and vLLM ask for.
        assert opened.metadata()["format"] == "pt"
    (length,) = struct.unpack("<Q", file.read_bytes()[:8])
    assert length % 8 == 0


def test_the_checksum_is_of_names_shapes_and_data(file, tmp_path):
    check_checksum(file)
    content = file.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    metadata = header.pop("__metadata__")
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    expected = hashlib.sha256(text + content[8 + length :]).hexdigest()
    assert metadata == {"format": "pt", "hgrpo.sha256": expected}


def test_the_same_tensors_are_the_same_bytes(file, tmp_path):
    again = tmp_path / "again"
    turned = dict(reversed(TENSORS.items()))
    write_with_checksum(save(turned, metadata={"more": "1", "format": "pt"}), again)
    other = tmp_path / "other"
    write_with_checksum(save(TENSORS, metadata={"format": "pt", "more": "1"}), other)
    assert again.read_bytes() == other.read_bytes()
    write_with_checksum(file.read_bytes(), again)
    assert again.read_bytes() == file.read_bytes()


def test_no_flipped_bit_gives_other_tensors(file):
    content = file.read_bytes()
    silent = 0
    for at in range(len(content)):
        flip(file, at)
        try:
            check_checksum(file)
            loaded = load_file(file)
        except Exception as error:
            # If the format's own reader refuses the header, whoever loads the file names it.
            assert isinstance(error, UserError) or at < len(content) - 28
        else:
            silent += 1
            assert loaded.keys() == TENSORS.keys()
            assert all(torch.equal(loaded[name], tensor) for name, tensor in TENSORS.items())
        file.write_bytes(content)
    # Only damage to the checksum's name, to "format" and to the header's padding goes unnoticed.
    assert silent < 60


def test_a_file_without_a_checksum_passes(tmp_path):
    path = tmp_path / "weights.safetensors"
    for metadata in (None, {"format": "pt"}):
        save_file(TENSORS, path, metadata=metadata)
        flip(path, -1)
        check_checksum(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"weights\.safetensors: not a complete safetensors file"):
        check_checksum(path)


@pytest.mark.parametrize("length", [5, -1])
def test_a_file_that_is_cut_off_comes_with_what_to_do(file, length):
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(UserError, match=r"truncated.* intact copy.* result .* running snakemake"):
        check_checksum(file)


@pytest.mark.parametrize("adapt", ["lora", "full"])
def test_a_flipped_bit_in_a_policy_is_named_wherever_it_is_loaded(tmp_path, adapt):
    policy = make_policy(tmp_path / "base", adapt=adapt)
    saved = tmp_path / "adapter"
    policy.save_adapter(saved)
    policy.save_adapter(tmp_path / "again")
    name = WEIGHTS[adapt]
    assert (saved / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    loaded = load_policy(policy.config, tmp_path / "base", saved)
    for name_, tensor in loaded.trained_state().items():
        assert torch.equal(tensor, policy.trained_state()[name_])
    flip(saved / name)
    for load in (
        lambda: load_policy(policy.config, tmp_path / "base", saved),
        lambda: load_player(policy.config, tmp_path / "base", saved),
        lambda: policy.load_reference(saved),
    ):
        with pytest.raises(UserError, match=rf"{name}: the file does not match its checksum"):
            load()
    # As somebody else would have made it.
    save_file(load_file(saved / name), saved / name, metadata={"format": "pt"})
    load_policy(policy.config, tmp_path / "base", saved)


def test_transformers_and_peft_load_what_was_saved(tmp_path):
    import peft
    from transformers import AutoModelForCausalLM

    policy = make_policy(tmp_path / "base", adapt="lora")
    for name, parameter in policy.trainable:
        torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(len(name)))
    policy.save_adapter(tmp_path / "adapter")
    base = AutoModelForCausalLM.from_pretrained(str(tmp_path / "base"), local_files_only=True)
    theirs = peft.PeftModel.from_pretrained(base, str(tmp_path / "adapter"))
    ids = torch.tensor([[1, 5, 9, 30]])
    with torch.no_grad():
        expected = policy.model(input_ids=ids).logits
        torch.testing.assert_close(theirs.float()(input_ids=ids).logits, expected)


def test_a_flipped_bit_in_a_fitted_turnrd_is_named(tmp_path):
    settings = ModelSettings(hidden=8, layers=1, heads=2)
    save_model(build_model(settings, 4, 0), settings, 4, {}, tmp_path)
    load_model(tmp_path, Settings(model=settings))
    flip(tmp_path / "model.safetensors")
    with pytest.raises(
        UserError, match=r"model\.safetensors: the file does not match its checksum"
    ):
        load_model(tmp_path, Settings(model=settings))


@pytest.fixture
def learner(tmp_path):
    policy = make_policy(tmp_path / "base", adapt="lora", hidden_size=8)
    optimiser = torch.optim.AdamW([parameter for _, parameter in policy.trainable])
    for _, parameter in policy.trainable:
        parameter.grad = torch.ones_like(parameter)
    optimiser.step()
    return Learner(policy, optimiser, 0.0, None, None)


def same(one, other):
    """Whether two states are equal to the last tensor."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def middle_of_a_tensor(path):
    with zipfile.ZipFile(path) as archive:
        tensors = [part for part in archive.infolist() if "/data/" in part.filename]
        data = archive.read(max(tensors, key=lambda part: part.file_size))
    return path.read_bytes().index(data) + len(data) // 2


def test_no_flipped_bit_gives_another_state(learner, tmp_path):
    path = tmp_path / "trainer_state.pt"
    write_state(learner.state(), path)
    expected, content = learner.state(), path.read_bytes()
    named = 0
    for at in range(0, len(content), 151):
        flip(path, at)
        try:
            state = read_state(path, Learner.STATE)
        except UserError as error:
            assert str(error).startswith(f"{path}: the file is damaged (") and "\n" not in str(
                error
            )
            named += 1
        else:
            assert same(state, expected), at
        path.write_bytes(content)
    # torch fills its archive up with zeros, so that tensors begin at multiples of 64.
    assert named > 6


@pytest.mark.parametrize(
    ("name", "content"), [("learner.pt", None), ("rows.json", b"[{]"), ("learner.pt", b"")]
)
def test_a_damaged_step_is_named_and_nothing_is_removed(learner, tmp_path, name, content):
    scratch = tmp_path / "scratch"
    with pytest.raises(UserError) as caught, job_scratch(scratch, scratch, "key") as folder:
        checkpoints = Checkpoints(folder)
        checkpoints.save(learner, [{"step": 0}])
        assert checkpoints.restore(learner) == [{"step": 0}]
        damaged = folder / "step_00000" / name
        if content is None:
            flip(damaged, middle_of_a_tensor(damaged))
        else:
            damaged.write_bytes(content)
        files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        learner.kl_coefficient = 0.5
        before = learner.policy.trained_state()
        checkpoints.restore(learner)
    assert str(caught.value).startswith(f"{damaged}: the file is damaged (")
    assert f"remove {damaged.parent} to resume" in str(caught.value)
    assert {path: path.read_bytes() for path in files} == files
    # Nothing of the damaged file has reached the learner.
    assert learner.kl_coefficient == 0.5
    assert same(learner.policy.trained_state(), before)
    # The remedy that the message names starts the round from the beginning.
    shutil.rmtree(damaged.parent)
    assert Checkpoints(folder).restore(learner) == []


@pytest.mark.parametrize(
    ("damage", "culprit"),
    [
        ("cut off", "sft/adapter_model.safetensors"),
        ("flipped", "base/model.safetensors"),
        ("flipped", "policy/trainer_state.pt"),
    ],
)
def test_a_round_with_a_damaged_input_keeps_its_steps(
    learner, tmp_path, monkeypatch, capsys, damage, culprit
):
    for name in ("sft", "policy"):
        learner.policy.save_adapter(tmp_path / name)
    write_state(learner.state(), tmp_path / "policy/trainer_state.pt")
    finished = tmp_path / "scratch/0123456789abcdef/step_00004/learner.pt"
    finished.parent.mkdir(parents=True)
    finished.write_bytes(b"four steps of work")
    path = tmp_path / culprit
    if damage == "cut off":
        path.write_bytes(path.read_bytes()[:-100])
    else:
        flip(path, middle_of_a_tensor(path) if path.suffix == ".pt" else None)
    settings = stage_settings(
        load_study(PROJECT / "configs/studies/smoke.yaml"), "rl_round", "flatGRPO"
    )
    settings["model"] = learner.policy.config.model_dump(mode="json")
    (tmp_path / "assets").mkdir()
    pack(tmp_path, [], tmp_path / "assets/tasks.tar.gz")
    panels = {name: [Task(name, name, name, "x").__dict__] for name in SPLITS}
    (tmp_path / "assets/panels.json").write_text(json.dumps(panels), encoding="utf-8")
    arguments = ["rl_round", "--config", json.dumps(settings), "--seed", "1", "--round", "2"]
    for name in ("assets", "base", "sft", "policy", "scratch", "out"):
        arguments += [f"--{name}", str(tmp_path / name)]
    with pytest.raises(SystemExit) as stopped:
        run_command(*arguments)
    message = capsys.readouterr().err
    assert stopped.value.code == 2
    assert message.startswith(f"error: {path}: ") and message.count("\n") == 1
    assert finished.read_bytes() == b"four steps of work"
    assert not (tmp_path / "out").exists()
