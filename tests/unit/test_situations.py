"""Situations found by playing again are those that were there."""

import copy

import pytest
from test_rollout import MAX_TOKENS, TURN_CAP
from tiny_policy import HallEnv, hall_tasks, make_policy
from toy_round import imitate_random_doors

from hgrpo.agent.conversation import Conversation
from hgrpo.agent.situations import add_situations
from hgrpo.errors import UserError
from hgrpo.rollout.collector import Collector
from hgrpo.rollout.engine import Sampling
from hgrpo.rollout.torch_engine import TorchEngine


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    policy = make_policy(tmp_path_factory.mktemp("base"))
    imitate_random_doors(policy)
    conversation = Conversation(policy.tokenizer)
    engine = TorchEngine(policy, 16, Sampling(1.0, MAX_TOKENS), conversation.end_id)
    collector = Collector(engine, conversation, HallEnv, TURN_CAP, MAX_TOKENS, situations=True)
    return [t for group in collector.collect(hall_tasks(2), 4, ("s",)) for t in group]


def situations(trajectories):
    return [[(turn.state, turn.commands) for turn in t.turns] for t in trajectories]


def without(trajectories):
    bare = copy.deepcopy(trajectories)
    for turn in (turn for trajectory in bare for turn in trajectory.turns):
        turn.state = turn.commands = ""
    return bare


def test_a_turn_has_the_situation_it_acted_in(played):
    for trajectory in played:
        assert trajectory.turns[0].state == "opened "
    longest = max(played, key=lambda t: len(t.turns))
    assert longest.turns[-1].state != "opened "


def test_playing_again_finds_the_same_and_leaves_known_ones_alone(played):
    bare = without(played)
    assert add_situations(bare, HallEnv) == sum(len(t.turns) for t in played)
    assert situations(bare) == situations(played)
    assert add_situations(bare, None) == 0


def test_another_answer_is_an_error(played):
    bare = without(played)
    bare[0].turns[0].observation = "You are elsewhere."
    with pytest.raises(UserError, match="rollout 0: played again, the environment says"):
        add_situations(bare, HallEnv)
