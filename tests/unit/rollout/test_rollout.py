from dataclasses import replace

import numpy as np
import pytest
import torch
from hall import MAX_TOKENS, TURN_CAP, collect
from tiny_policy import DOORS, TEXTS, HallEnv, hall_tasks, make_policy

from hgrpo.agent.conversation import Conversation
from hgrpo.errors import TrainingError, UserError
from hgrpo.games.base import check_step
from hgrpo.policy.logprobs import make_batch, sampled_logprobs
from hgrpo.rollout.collector import Collector
from hgrpo.rollout.engine import Request, Sampling
from hgrpo.rollout.torch.engine import TorchEngine, draw


def replies(trajectories):
    return [(t.token_ids, [turn.span for turn in t.turns]) for t in trajectories]


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return make_policy(tmp_path_factory.mktemp("base"))


@pytest.mark.parametrize(("capacity", "compiled"), [(1, False), (7, False), (7, True)])
def test_a_trajectory_does_not_depend_on_what_shares_its_batch(policy, capacity, compiled):
    few = collect(policy, capacity, compiled=compiled)
    assert replies(few) == replies(collect(policy, 64, compiled=compiled))


def test_greedy_does_not_depend_on_the_batch_or_the_stream(policy):
    alone = collect(policy, 1, temperature=0.0, rollouts=1, seed=3)
    beside = collect(policy, 64, temperature=0.0, rollouts=1, seed=4)
    assert replies(alone) == replies(beside)


def test_progress_that_no_potential_has_is_refused(policy, monkeypatch):
    step = HallEnv.step
    monkeypatch.setattr(HallEnv, "step", lambda *each: replace(step(*each), progress=7.0))
    with pytest.raises(
        UserError, match="task hall-0-1: progress sums to .*potential between 0 and 1"
    ):
        collect(policy, 8, tasks=1)


@pytest.mark.parametrize(
    "change",
    [
        *({name: x} for name in ("env_reward", "progress") for x in (np.nan, 10**400, "1.0", True)),
        {"done": None},
        {"success": "False"},
        {"info": {}},
    ],
)
def test_an_invalid_number_or_flag_names_task_and_turn(change):
    env, (task,) = HallEnv(), hall_tasks(1)
    env.reset(task)
    step = replace(env.step("open door 1"), **change)
    name = next(iter(change)).replace("info", "admissible")
    with pytest.raises(UserError, match=rf"HallEnv\.step: task hall-0-1 turn 3: {name} is "):
        check_step(env, step, task, 3)


def test_an_invalid_step_stops_the_play(policy, monkeypatch):
    monkeypatch.setattr(HallEnv, "step", lambda *each: None)
    with pytest.raises(UserError, match=r"HallEnv\.step: expected a Step, not NoneType"):
        collect(policy, 8, tasks=1)


@pytest.mark.parametrize(
    ("method", "spoil", "what"),
    [
        ("reset", lambda n, seen: replace(seen, text=f"{seen.text} Day {n}."), "observation"),
        ("step", lambda n, step: replace(step, env_reward=float(n)), "reward (1.0,"),
    ],
)
def test_a_game_that_answers_equal_actions_differently_is_refused(
    policy, monkeypatch, method, spoil, what
):
    honest, calls = getattr(HallEnv, method), []

    def spoilt(*arguments):
        calls.append(arguments)
        return spoil(len(calls) - 1, honest(*arguments))

    monkeypatch.setattr(HallEnv, method, spoilt)
    with pytest.raises(UserError) as caught:
        collect(policy, 8, tasks=1, temperature=0.0)
    line = str(caught.value)
    assert line.startswith(f"tiny_policy.HallEnv.{method}: task hall-0-1 turn ")
    assert f": {what} " in line and ") after equal actions in another episode" in line


def test_numbers_of_numpy_are_stored_as_floats(policy, monkeypatch):
    step = HallEnv.step
    as_numpy = {"env_reward": np.float32(0.5), "progress": 0, "success": np.True_, "done": 1}
    monkeypatch.setattr(HallEnv, "step", lambda *each: replace(step(*each), **as_numpy))
    (trajectory,) = collect(policy, 8, tasks=1, rollouts=1)
    (turn,) = trajectory.turns
    assert [type(x) for x in (turn.env_reward, turn.progress, trajectory.success)] == [
        *(float, float, bool)
    ]
    assert (turn.env_reward, trajectory.success) == (0.5, True)


def test_an_engine_whose_log_probs_are_not_finite_is_refused(policy, monkeypatch):
    step = TorchEngine.step

    def spoilt(engine):
        return [replace(reply, logprobs=[*reply.logprobs[1:], np.nan]) for reply in step(engine)]

    monkeypatch.setattr(TorchEngine, "step", spoilt)
    with pytest.raises(TrainingError, match="task hall-0-1 rollout . turn 0: the engine's log"):
        collect(policy, 8, tasks=1)


def test_streams_and_rollouts_differ(policy):
    assert replies(collect(policy, 64, seed=3)) != replies(collect(policy, 64, seed=4))
    group = collect(policy, 64, tasks=1)
    assert len({tuple(t.token_ids) for t in group}) > 1


@pytest.mark.parametrize(
    ("adapt", "kv_heads", "compiled"),
    [("full", 2, False), ("full", 4, False), ("lora", 1, False), ("full", 2, True)],
)
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_recorded_logprobs_are_the_trainers(tmp_path, adapt, kv_heads, compiled, temperature):
    policy = make_policy(tmp_path, adapt, kv_heads)
    with torch.no_grad():
        for _, parameter in policy.trainable:
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=torch.manual_seed(0)))
    trajectories = collect(policy, 16, temperature, compiled=compiled)
    batch = make_batch(
        [t.token_ids for t in trajectories],
        [[turn.span for turn in t.turns] for t in trajectories],
    )
    with torch.no_grad():
        logprobs, _ = sampled_logprobs(policy.causal_lm, batch, temperature)
    recorded = torch.tensor([x for t in trajectories for turn in t.turns for x in turn.logprobs])
    assert (logprobs - recorded).abs().max() < 1e-4


def test_spans_cover_what_was_sampled_and_nothing_else(policy):
    for trajectory in collect(policy, 64):
        assert trajectory.turns[-1].span[1] == len(trajectory.token_ids)
        for turn in trajectory.turns:
            assert turn.token_ids == trajectory.token_ids[slice(*turn.span)]
            assert 0 < len(turn.logprobs) == len(turn.token_ids) <= MAX_TOKENS


def test_overlong_replies_are_counted_and_closed_in_context(policy):
    conversation = Conversation(policy.tokenizer)
    trajectories = [t for t in collect(policy, 64) if t.turns[0].overlong and len(t.turns) > 1]
    assert trajectories, "an untrained policy must run into the token limit"
    first = trajectories[0]
    assert first.overlong == sum(turn.overlong for turn in first.turns) > 0
    end = first.turns[0].span[1]
    assert conversation.end_id not in first.token_ids[end - MAX_TOKENS : end]
    assert first.token_ids[end] == conversation.end_id


def test_turn_cap_truncates(policy):
    conversation = Conversation(policy.tokenizer)
    for trajectory in collect(policy, 64):
        assert len(trajectory.turns) <= TURN_CAP
        assert trajectory.truncated == (not trajectory.success)
        # The answer to the last reply is kept beside the tokens, as the next turn would read it.
        last = trajectory.turns[-1]
        known = last.action.removeprefix("open ") in DOORS and last.action.startswith("open ")
        text = f"The {last.action.removeprefix('open ')} is empty." if known else "Nothing happens."
        closing = [conversation.end_id] if last.overlong else []
        answer = [*closing, *conversation.observation(text)]
        assert trajectory.unread == (answer if trajectory.truncated else [])


def test_context_overflow_ends_the_episode_and_is_counted(policy):
    conversation = Conversation(policy.tokenizer)
    engine = TorchEngine(policy, 4, Sampling(1.0, MAX_TOKENS))
    engine.max_length = len(conversation.opening("x" * 5)) + 2 * MAX_TOKENS
    collector = Collector(engine, conversation, HallEnv, 50, MAX_TOKENS)
    (group,) = collector.collect(hall_tasks(1), 4, ("overflow",))
    lost = [t for t in group if not t.success]
    assert lost
    assert all(t.context_overflow and t.truncated and len(t.turns) < 50 for t in lost)
    # The tokens hold the last answer already.
    assert all(t.unread == [] and len(t.token_ids) > t.turns[-1].span[1] for t in lost)


def test_a_first_text_without_room_for_a_reply_is_named(policy):
    conversation = Conversation(policy.tokenizer)
    engine = TorchEngine(policy, 4, Sampling(1.0, MAX_TOKENS))
    length = len(conversation.opening(TEXTS[0]))
    collector = Collector(engine, conversation, HallEnv, 1, MAX_TOKENS)
    engine.max_length = length + MAX_TOKENS
    collector.collect(hall_tasks(1), 1, ("long",))
    engine.max_length -= 1
    with pytest.raises(UserError, match=f"task hall-0-1: {length} tokens before the first reply"):
        collector.collect(hall_tasks(1), 1, ("long",))


def test_conversations_that_part_after_a_shared_reply_keep_what_they_read(policy):
    """Two continuations of one text reply alike, and then read different answers."""
    start, answers = [5, 6, 7, 8], ([9, 10], [11, 12])
    engine = TorchEngine(policy, 8, Sampling(0.0, 3))
    engine.hold(0, start)
    for name in (1, 2):
        engine.submit(Request(name, start, 1, text=0))
    first = []
    while len(first) < 2:
        first += engine.step()
    assert first[0].token_ids == first[1].token_ids
    prefix = start + first[0].token_ids
    for name, more in zip((1, 2), answers, strict=True):
        engine.submit(Request(name, prefix + more, 1))
    finished = {}
    while len(finished) < 2:
        finished |= {each.conversation: each for each in engine.step()}
    for name, more in zip((1, 2), answers, strict=True):
        alone = TorchEngine(policy, 1, Sampling(0.0, 3))
        alone.submit(Request(name, prefix + more, 1))
        while not (done := alone.step()):
            pass
        assert finished[name].token_ids == done[0].token_ids
        np.testing.assert_allclose(finished[name].logprobs, done[0].logprobs, atol=1e-4)


def test_draw_follows_the_distribution():
    logits = torch.log(torch.tensor([[0.5, 0.2, 0.3]])).expand(20_000, 3)
    streams = np.zeros(20_000, dtype=np.uint64)
    tokens, logprobs = draw(logits, 1.0, streams, np.arange(20_000))
    shares = np.bincount(tokens, minlength=3) / 20_000
    assert shares == pytest.approx([0.5, 0.2, 0.3], abs=0.015)
    assert logprobs[0] == pytest.approx(np.log([0.5, 0.2, 0.3][tokens[0]]), abs=1e-5)
