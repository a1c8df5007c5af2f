"""When two turns are in the same state, and where the last turn of a rollout leads."""

import numpy as np
import pytest
from state_graph_example import (
    TASK,
    credit,
    group,
    rollout,
)

from hgrpo.credit.state_graph.graph import (
    UNKNOWN,
    build_graph,
    flatten,
    numbered,
    observed_ends,
)
from hgrpo.credit.state_graph.keys import clusters, cosine_clusters, states, with_history
from hgrpo.credit.state_graph.settings import Key
from hgrpo.trajectories.trajectory import FinalState, Trajectory, Turn


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


def test_replies_without_a_command_are_one_action():
    actions = ("", "  ", " Look\n", "look", "go to Shelf 1")
    turns = flatten(walk(*(turn(action=action) for action in actions)))
    assert turns.action.tolist() == [0, 0, 1, 1, 2]


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
    assert states(moves, Key(state=state)).tolist() == [0, 0, 0, 1, 1]
    assert states(moves, Key(state=state, noop="raw")).tolist() == [0, 1, 1, 2, 1]


def test_clusters_are_named_by_their_first_text():
    # neighbours resemble each other by 0.9, the ends by 0.8: the middle goes with the first
    texts = {"aaaaaaaaaa", "aaaaaaaaab", "aaaaaaaabb"}
    assert clusters(texts, 0.9) == {
        "aaaaaaaaaa": "aaaaaaaaaa",
        "aaaaaaaaab": "aaaaaaaaaa",
        "aaaaaaaabb": "aaaaaaaabb",
    }
    assert set(clusters(texts, 1.0).values()) == texts


# Directions in degrees; the cosines of 10, 20 and 30 degrees are .985, .940 and .866.
ANGLES = (0, 10, 30, 180, 10)


def directions(length: float = 1.0) -> np.ndarray:
    radians = np.deg2rad(ANGLES)
    return length * np.stack([np.cos(radians), np.sin(radians)], axis=1)


@pytest.mark.parametrize(
    ("theta", "expected"),
    [
        (1.0, [0, 1, 2, 3, 1]),
        (0.99, [0, 1, 2, 3, 1]),
        (0.98, [0, 0, 1, 2, 0]),
        # 10 and 30 degrees would do, but 0 and 30 would not.
        (0.93, [0, 0, 1, 2, 0]),
        (0.86, [0, 0, 0, 1, 0]),
    ],
)
def test_hidden_states_of_a_high_cosine_are_one_state(theta, expected):
    for length in (1.0, 30.0):
        numbers = cosine_clusters(directions(length), theta)
        assert numbered(numbers.tolist()).tolist() == expected


@pytest.mark.parametrize("seed", range(2))
def test_clusters_of_hidden_states_do_not_depend_on_the_order_of_turns(seed):
    rng = np.random.default_rng(seed)
    # Many of these vectors are equal, and many pairs equally far apart.
    rows = rng.integers(1, 4, size=(20, 3)).astype(np.float32)
    order = rng.permutation(20)
    straight, shuffled = cosine_clusters(rows, 0.95)[order], cosine_clusters(rows[order], 0.95)
    assert numbered(straight.tolist()).tolist() == numbered(shuffled.tolist()).tolist()
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    together = shuffled[:, None] == shuffled
    assert (unit @ unit.T)[order][:, order][together].min() >= 0.95 - 1e-5
    assert 1 < shuffled.max() < 20


def test_one_vector_per_text_tells_apart_what_the_texts_do():
    trajectories = walk(turn("hall"), turn("shelf", admissible=False), turn("attic"), turn("hall"))
    hidden = np.eye(3)[[0, 1, 2, 0]]
    for noop, expected in (("raw", [0, 1, 2, 0]), ("carry", [0, 1, 1, 0])):
        key = Key(state="hidden", theta=1.0, noop=noop)
        assert states(trajectories, key, hidden=hidden).tolist() == expected
        assert states(trajectories, Key(state="obs", noop=noop)).tolist() == expected


@pytest.mark.parametrize(
    ("state", "same"),
    [
        ("obs", {"state", "commands"}),
        ("obs_cmds", {"state"}),
        ("struct", {"observation", "space"}),
        ("page", {"state", "commands", "space"}),
        ("sim", {"state", "commands", "observation", "space"}),
    ],
)
def test_what_may_differ_between_turns_and_final_situations_of_one_state(state, same):
    base = {"observation": "a mug", "state": "at shelf 1", "commands": "1f"}
    others = {
        "observation": {"observation": "a mug."},
        "state": {"state": "at shelf 2"},
        "commands": {"commands": "2f"},
        "space": {"observation": " a \n mug"},
    }
    key = Key(state=state, **({"theta": 0.7} if state == "sim" else {}))
    for name, change in others.items():
        (moves,) = walk(turn(**base), turn(**base | change))
        moves.final = FinalState(**base | change)
        first, other, final = states([moves], key, [0])
        assert other == final
        assert (first == other) == (name in same), name


def test_the_final_situation_follows_an_inadmissible_action_as_a_turn_would():
    for admissible, noop, expected in (
        (False, "carry", [0, 0]),
        (False, "raw", [0, 1]),
        (True, "carry", [0, 1]),
    ):
        (moves,) = walk(turn("kitchen", admissible=admissible))
        moves.final = FinalState(NOTHING, "", "")
        assert states([moves], Key(state="obs", noop=noop), [0]).tolist() == expected


def test_final_situations_come_after_all_turns_and_only_of_rollouts_in_ended():
    trajectories = group(("A a, B", "failure"), ("B a, C", "timeout"), ("C a", "success"))
    numbers = states(trajectories.trajectories, Key(), [0, 1])
    assert numbers.tolist() == [0, 1, 2, 1, 2]
    assert states(trajectories.trajectories, Key(), [1]).tolist() == [0, 1, 2, 2]
    with pytest.raises(RuntimeError, match="a trajectory has no final state"):
        states(trajectories.trajectories, Key(), [2])


@pytest.mark.parametrize("actions", [False, True])
@pytest.mark.parametrize("history", [0, 1, 2, 9])
def test_a_final_situation_has_the_history_that_a_turn_there_would_have(history, actions):
    """Each rollout's last state is once a turn and once the situation seen at the end."""
    if actions and not history:
        return
    key = Key(history=history, history_actions=actions)
    moves = ["A a, B b, C", "B b, C", "A a, B b, A a, B b, C", "C", "B a, C"]
    turned = group(*((f"{m} stop", "timeout") for m in moves)).trajectories
    expected = with_history(states(turned, key), flatten(turned), key)
    seen = [t for t in group(*((m, "timeout") for m in moves)).trajectories if t.turns]
    turns = flatten(seen)
    ends = observed_ends(turns, "observed", "absorb")
    state = states(seen, key, turns.rollout[ends].tolist())
    numbers = with_history(state, turns, key, ends)
    lengths = [len(t.turns) for t in turned]
    rows = np.split(np.arange(len(expected)), np.cumsum(lengths)[:-1])
    rows = [row for row in rows if len(row) > 1]
    order = [i for row in rows for i in row[:-1]] + [row[-1] for row in rows]
    same = expected[order][:, None] == expected[order][None]
    assert (numbers[:, None] == numbers[None]).tolist() == same.tolist()


def labels(members: list[tuple[str, str]], key: Key) -> list[int]:
    trajectories = group(*members).trajectories
    return with_history(states(trajectories, key), flatten(trajectories), key).tolist()


def test_history_tells_apart_what_came_before():
    members = [("A a, B a, C a", "failure"), ("A b, B a, C a", "failure"), ("B a, C a", "failure")]
    none = labels(members, Key())
    assert none == [0, 1, 2, 0, 1, 2, 1, 2]
    # with one earlier state in the key, a start differs from a later visit
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


@pytest.mark.parametrize(
    ("end", "rules", "successor"),
    [
        *((end, ("fail", "absorb"), "lost") for end in ("failure", "timeout")),
        *(("success", rules, "won") for rules in (("observed", "observed"), ("drop", "absorb"))),
        ("failure", ("drop", "absorb"), "lost"),
        ("timeout", ("observed", "absorb"), "C"),
        ("failure", ("observed", "absorb"), "lost"),
        ("timeout", ("fail", "observed"), "lost"),
        ("failure", ("fail", "observed"), "C"),
        ("timeout", ("clamp", "absorb"), "C"),
        ("failure", ("clamp", "observed"), "C"),
        ("timeout", ("drop", "observed"), "unknown"),
    ],
)
def test_a_rollout_leads_to_the_situation_it_was_last_seen_in(end, rules, successor):
    trajectories = [
        rollout("A a, B a, C", end),
        rollout("", end),
        rollout("C a, A", "success"),
        rollout("A b, A", end),
    ]
    # A success at the last allowed turn is a success.
    trajectories[2].truncated = True
    turns = flatten(trajectories)
    ended = turns.rollout[observed_ends(turns, *rules)].tolist()
    graph = build_graph(states(trajectories, Key(), ended), turns, *rules)
    nodes = {"won": graph.success, "lost": graph.n_states + 1, "unknown": UNKNOWN, "C": 2}
    last = 0 if successor == "C" else nodes[successor]
    assert graph.counted.tolist() == [True, successor != "unknown"] * 2
    assert graph.successor.tolist() == [1, nodes[successor], graph.success, last]
    # C is a state that another rollout left, and A one that this rollout and another left
    assert graph.n_states == 3
    assert graph.clamped.tolist() == ([0, 2] if (end, rules[0]) == ("timeout", "clamp") else [])


@pytest.mark.parametrize("rule", [{"timeout": "observed"}, {"timeout": "clamp"}])
def test_rollouts_without_a_final_situation_are_refused_where_it_is_read(rule):
    term = {"value": "bellman", "credit": "td"}
    with pytest.raises(RuntimeError, match="a trajectory has no final state"):
        credit(rule | {"terms": [term]}, group(("A a", "timeout"), ("A b", "success")))
    credit(rule | {"terms": [term]}, group(("A a", "failure"), ("A b", "success")))


def test_shares_of_a_state_sum_to_one():
    turns = flatten(group(("A a, A a, A b, B a", "timeout"), ("A b, B a", "failure")).trajectories)
    graph = build_graph(np.array([0, 0, 0, 1, 0, 1]), turns, "drop")
    assert graph.shares("count").tolist() == [0.25, 0.25, 0.25, 0, 0.25, 1]
    assert graph.shares("uniform").tolist() == [0.25, 0.25, 0.25, 0, 0.25, 1]
    graph = build_graph(np.array([0, 0, 0, 0, 0, 0]), turns, "fail")
    # four a and two b
    assert graph.shares("uniform") == pytest.approx([1 / 8, 1 / 8, 1 / 4, 1 / 8, 1 / 4, 1 / 8])
