"""A chat model of several files, taken over by its path, through all stages of a study."""

import json

import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from chat_models import START, chat_tokenizer, write_chat
from small_study import make_study

from hgrpo.agent.conversation import conversation_for
from hgrpo.base_model.folder import open_base
from hgrpo.policy.load import load_policy
from hgrpo.policy.logprobs import make_batch, sampled_logits, token_logprobs
from hgrpo.policy.settings import ModelConfig

TURN_CAP = 4
SYSTEM = "One command, nothing else."


@pytest.fixture(scope="module")
def study(project, forks, tmp_path_factory):
    """A small study whose base is a chat model, up to its SFT."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    root = tmp_path_factory.mktemp("study")
    made = make_study(project, root, forks, trajectories=80, until="expert")
    rows = pq.read_table(root / "expert/trajectories.parquet").to_pylist()
    texts = [text for row in rows for text in row["observations"] + row["actions"]]
    tokenizer = chat_tokenizer("qwen", texts, 1500)
    source = write_chat(root / "source", tokenizer=tokenizer)
    config = Qwen2Config(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=96,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
    )
    Qwen2ForCausalLM(config).save_pretrained(source, max_shard_size="100KB")
    assert not (source / "model.safetensors").exists()
    model = {
        "name": "chat",
        "path": str(source),
        "system": SYSTEM,
        "train_dtype": "float32",
    }
    for stage in made.configs.values():
        if "model" in stage:
            stage["model"] = model
        if "turn_cap" in stage.get("env", ()):
            stage["env"]["turn_cap"] = TURN_CAP
    made.configs["rl_round"]["training"] |= {"steps_per_round": 2, "tasks_per_step": 3}
    made.configs["sft"]["sft"]["epochs"] = 4.0
    for stage, options in (
        ("base", {"expert": root / "expert"}),
        ("sft", {"base": root / "base", "expert": root / "expert"}),
    ):
        done = made.run(stage, **options, out=root / stage)
        assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="module")
def played(study):
    """The trajectories of a round, each with its turns."""
    out = study.root / "round"
    done = study.run("rl_round", **study.round_options(out))
    assert done.returncode == 0, done.stderr
    key = ["step", "task_id", "rollout"]
    turns = dict(list(pd.read_parquet(out / "turns.parquet").groupby(key)))
    rows = pq.read_table(out / "sequences.parquet").to_pylist()
    return [(row, turns[tuple(row[k] for k in key)].sort_values("turn")) for row in rows]


def test_a_trajectory_is_its_turns_by_the_template(study, played):
    conversation = conversation_for(open_base(study.root / "base"), SYSTEM)
    start = conversation.tokenizer.token_to_id(START)
    for row, turns in played:
        ids, spans = row["token_ids"], [*row["spans"], (len(row["token_ids"]), None)]
        seen = conversation.opening(turns["observation"].iloc[0])
        assert seen[0] == start
        assert conversation.tokenizer.decode(seen).startswith(f"system\n{SYSTEM}\nuser\n-= Welcome")
        assert ids[: spans[0][0]] == seen
        for (_, end), (following, _), text in zip(
            spans, spans[1:], turns["observation"][1:], strict=False
        ):
            # A reply that was cut at the token limit is closed for it.
            cut = ids[end - 1] != conversation.end_id
            closing = [conversation.end_id] if cut else []
            assert ids[end:following] == closing + conversation.observation(text)


def test_the_trainer_scores_what_was_sampled(study, played):
    model = ModelConfig(**study.configs["sft"]["model"])
    policy = load_policy(model, open_base(study.root / "base"), study.root / "sft/adapter")
    # What the first step was sampled from.
    rows = [row for row, _ in played if row["step"] == 0]
    batch = make_batch([row["token_ids"] for row in rows], [row["spans"] for row in rows])
    with torch.no_grad():
        scored = token_logprobs(sampled_logits(policy.causal_lm, batch), batch)
    sampled = torch.tensor([p for row in rows for p in row["behaviour_logprobs"]])
    assert (scored - sampled).abs().max() < 1e-4


def test_an_evaluation(study, tmp_path):
    done = study.run("evaluate", **study.evaluation_options(tmp_path / "eval"))
    assert done.returncode == 0, done.stderr
    assert len(pd.read_parquet(tmp_path / "eval/episodes.parquet")) == 2 * (12 + 24)


def test_sft_teaches_the_actions_alone(study):
    summary = json.loads((study.root / "sft/summary.json").read_bytes())
    log = json.loads((study.root / "sft/train_log.json").read_bytes())["rows"]
    assert summary["too_long"] < summary["train_trajectories"]
    assert log[-1]["loss"] < log[0]["loss"] - 1
