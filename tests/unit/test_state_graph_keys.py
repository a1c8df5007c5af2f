"""When two turns are in the same state, and where the last turn of a rollout leads."""

import numpy as np
import pytest
from state_graph_example import (
    CRBC_TERM,
    GIGPO,
    METHODS,
    NO_TRAJECTORY,
    TASK,
    credit,
    flat,
    group,
    rollout,
    step_only,
)

from hgrpo.agent.trajectory import Trajectory, Turn
from hgrpo.credit.base import Group
from hgrpo.credit.state_graph.graph import UNKNOWN, build_graph
from hgrpo.credit.state_graph.keys import clusters, situations, with_history
from hgrpo.credit.state_graph.settings import Key
from hgrpo.credit.state_graph.turns import action_key, flatten


def turn(observation="", action="a", state="", commands="", admissible=True) -> Turn:
    return Turn(
        observation=observation,
        action=action,
        span=(0, 0),
        env_reward=0.0,
        progress=0.0,
        admissible=admissible,
        overlong=False,
        state=state,
        commands=commands,
    )


def walk(*turns: Turn) -> list[Trajectory]:
    return [Trajectory(TASK, 0, turns=list(turns))]


@pytest.mark.parametrize(
    ("state", "same"),
    [
        ("obs", {"state", "commands"}),
        ("obs_cmds", {"state"}),
        ("struct", {"observation", "space"}),
        ("page", {"state", "commands", "space"}),
    ],
)
def test_what_tells_states_apart(state, same):
    base = {"observation": "a mug", "state": "at shelf 1", "commands": "1f"}
    others = {
        "observation": {"observation": "a pen"},
        "state": {"state": "at shelf 2"},
        "commands": {"commands": "2f"},
        "space": {"observation": " a \n mug"},
    }
    for name, change in others.items():
        one, other = situations(walk(turn(**base), turn(**base | change)), Key(state=state))
        assert (one == other) == (name in same), name


@pytest.mark.parametrize(
    ("text", "key"),
    [(" Go to Shelf 1\n", "go to shelf 1"), ("", "<invalid>"), ("  ", "<invalid>")],
)
def test_action_keys(text, key):
    assert action_key(text) == key


def test_replies_without_a_command_are_one_action():
    turns = flatten(walk(turn(action=""), turn(action=" "), turn(action="look")))
    assert turns.action[0] == turns.action[1] != turns.action[2]


NOTHING = "Nothing happens."


@pytest.mark.parametrize("state", ["obs", "obs_cmds", "page"])
def test_an_inadmissible_action_leaves_the_agent_where_it_was(state):
    moves = walk(
        turn("kitchen", admissible=False),
        turn(NOTHING, admissible=False),
        turn(NOTHING),
        turn("hall", admissible=False),
        turn(NOTHING),
    )
    assert situations(moves, Key(state=state)).tolist() == [0, 0, 0, 1, 1]
    assert situations(moves, Key(state=state, noop="raw")).tolist() == [0, 1, 1, 2, 1]


def test_a_rollout_never_carries_into_the_next():
    kitchen = walk(turn("kitchen", admissible=False)) + walk(turn("hall"))
    assert situations(kitchen, Key(state="obs")).tolist() == [0, 1]


def test_similar_texts_are_one_state_in_any_order():
    texts = ["a mug and a pen 1", "a mug and a pen 2", "a mug and a cup 12", "an empty drawer"]
    key = Key(state="sim", theta=0.9)
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]):
        found = situations(walk(*(turn(texts[i]) for i in order)), key)
        by_text = dict(zip(order, found.tolist(), strict=True))
        assert by_text[0] == by_text[1]
        assert len(set(by_text.values())) == 3


def test_clusters_are_named_by_their_first_text():
    # neighbours resemble each other by 0.9, the ends by 0.8: the middle goes with the first
    texts = {"aaaaaaaaaa", "aaaaaaaaab", "aaaaaaaabb"}
    assert clusters(texts, 0.9) == {
        "aaaaaaaaaa": "aaaaaaaaaa",
        "aaaaaaaaab": "aaaaaaaaaa",
        "aaaaaaaabb": "aaaaaaaabb",
    }
    assert set(clusters(texts, 1.0).values()) == texts


def labels(members: list[tuple[str, str]], key: Key) -> list[int]:
    trajectories = group(*members).trajectories
    return with_history(situations(trajectories, key), flatten(trajectories), key).tolist()


def test_history_tells_apart_what_came_before():
    members = [("A a, B a, C a", "failure"), ("A b, B a, C a", "failure"), ("B a, C a", "failure")]
    none = labels(members, Key())
    assert none == [0, 1, 2, 0, 1, 2, 1, 2]
    # with one state before: a start is unlike a later visit
    one = labels(members, Key(history=1))
    assert one[1] == one[4] != one[6]
    assert one[2] == one[5] == one[7]
    two = labels(members, Key(history=2))
    assert two[2] == two[5] != two[7]
    # A was left by different actions
    acts = labels(members, Key(history=1, history_actions=True))
    assert len({acts[1], acts[4], acts[6]}) == 3
    assert acts[2] == acts[5] == acts[7]
    both = labels(members, Key(history=9, history_actions=True))
    assert len({both[2], both[5], both[7]}) == 3
    assert both[0] == both[3]


def test_history_longer_than_any_rollout_is_the_whole_of_it():
    members = [("A a, B a, A a, B a", "failure"), ("A a, B a, A a, B a", "failure")]
    assert labels(members, Key(history=3)) == labels(members, Key(history=1000))
    assert len(set(labels(members, Key(history=1000)))) == 4


@pytest.mark.parametrize(
    ("end", "timeout", "successor"),
    [
        ("success", "fail", "won"),
        ("failure", "fail", "lost"),
        ("timeout", "fail", "lost"),
        ("success", "drop", "won"),
        ("failure", "drop", "lost"),
        ("timeout", "drop", "unknown"),
    ],
)
def test_a_rollout_ends_in_a_sink(end, timeout, successor):
    trajectories = [rollout("A a, B a", end), rollout("", end), rollout("B a", "success")]
    turns = flatten(trajectories)
    graph = build_graph(situations(trajectories, Key()), turns, timeout)
    nodes = {"won": graph.success, "lost": graph.failure, "unknown": UNKNOWN}
    assert graph.successor.tolist() == [1, nodes[successor], graph.success]
    assert graph.counted.tolist() == [True, successor != "unknown", True]


def test_success_at_the_last_allowed_turn_is_a_success():
    one = rollout("A a", "success")
    one.truncated = True
    turns = flatten([one])
    graph = build_graph(np.array([0]), turns, "drop")
    assert graph.successor.tolist() == [graph.success]


def test_shares_of_a_state_sum_to_one():
    turns = flatten(group(("A a, A a, A b, B a", "timeout"), ("A b, B a", "failure")).trajectories)
    graph = build_graph(np.array([0, 0, 0, 1, 0, 1]), turns, "drop")
    assert graph.shares("count").tolist() == [0.25, 0.25, 0.25, 0, 0.25, 1]
    assert graph.shares("uniform").tolist() == [0.25, 0.25, 0.25, 0, 0.25, 1]
    graph = build_graph(np.array([0, 0, 0, 0, 0, 0]), turns, "fail")
    # four a and two b
    assert graph.shares("uniform") == pytest.approx([1 / 8, 1 / 8, 1 / 4, 1 / 8, 1 / 4, 1 / 8])


@pytest.mark.parametrize("depth", [0, 1, "inf"])
def test_a_state_seen_only_when_time_ran_out_is_worth_nothing(depth):
    of = group(("A a, B a", "timeout"), ("A b", "success"))
    term = CRBC_TERM | {"depth": depth}
    values = credit(NO_TRAJECTORY | {"timeout": "drop", "terms": [term]}, of)
    assert values[0][1] == 0
    assert values[0][0] == -values[1][0] < 0


def test_the_history_of_a_key_needs_no_text_to_differ():
    """Equal situations all along: the history counts turns since the start."""
    of = Group(walk(*[turn("x") for _ in range(3)]), ("test",))
    term = GIGPO["terms"][0] | {"key": {"state": "obs", "history": 5}}
    assert not flat(step_only({"terms": [term]}), of).any()


@pytest.mark.parametrize("method", METHODS)
def test_rollouts_are_left_as_they_were(method):
    of = group(("A a, B b!", "success"), ("A b", "timeout"))
    before = repr(of)
    credit(METHODS[method], of)
    assert repr(of) == before
