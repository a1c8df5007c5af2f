"""Every method on the group of state_graph_example, against numbers computed by another program."""

import numpy as np
import pytest
from state_graph_example import (
    BIPACE,
    CRBC,
    ECPO,
    G2PO,
    GAGPO,
    GIGPO,
    GRAFT,
    GRAFT_TERM,
    GRAPHGPO,
    GRAPHGPO_PUBLISHED,
    GRAPHHCA,
    HGPO,
    HGPO_BASE,
    NO_TRAJECTORY,
    RTMC,
    RTMC_TERM,
    SALT,
    SUCCESSOR,
    TURN_LOO,
    example,
    flat,
    group,
    raw,
    step_only,
)

from hgrpo.credit.state_graph.graph import Graph, Turns, build_graph, flatten, observed_ends
from hgrpo.credit.state_graph.keys import states, with_history
from hgrpo.credit.state_graph.settings import Key
from hgrpo.credit.state_graph.values import bellman, distances, returns_to_go

NAMES = [
    f"r{rollout}.{turn + 1}"
    for rollout, length in ((1, 3), (2, 5), (3, 6), (4, 4))
    for turn in range(length)
]
SUCCESS = np.repeat([True, False], [8, 10])


def column(table: str, name: str) -> list[float]:
    head, *rows = [line.split() for line in table.strip().splitlines()]
    assert [row[0] for row in rows] == NAMES
    return [float(row[head.index(name)]) for row in rows]


def near(values, digits=3):
    """Equal to numbers that were printed with this many digits."""
    return pytest.approx(values, abs=0.501 * 10**-digits)


def of_turn(values: np.ndarray, name: str) -> float:
    return values[NAMES.index(name)]


def parts(timeout: str = "fail", failure: str = "absorb") -> tuple[Turns, Graph]:
    trajectories = example().trajectories
    turns = flatten(trajectories)
    ended = turns.rollout[observed_ends(turns, timeout, failure)].tolist()
    return turns, build_graph(states(trajectories, Key(), ended), turns, timeout, failure)


def graft(**changes) -> dict:
    return NO_TRAJECTORY | {"terms": [GRAFT_TERM | changes]}


# Step credit; for G2PO the whole advantage. GraphGPO as published here: the others end in sinks.
CREDIT = """
turn     G  GiGPO   HGPO  +base   SALT GraphGPO   CRBC  GRAFT distinct   path      l GraphHCA   G2PO
r1.1 0.902  1.186  1.326  1.173  0.289    0.730  0.816  0.464    0.549  1.143  0.310    0.468  2.181
r1.2 0.950  0.789  0.841  0.845  0.289    0.730  0.551  0.613    0.521  0.765  0.177    0.662  1.833
r1.3 1.000  0.577  0.837  0.840  0.866    0.577  0.707  0.577    0.577  0.577  0.457    0.577  2.649
r2.1 0.815  1.000  1.118  1.034  0.289    0.730  0.816  0.464    0.213  1.036  0.310    0.468  2.181
r2.2 0.857  0.606  0.629  0.668  0.866   -1.095 -0.232 -0.151    0.210  0.659 -0.051   -0.393 -0.332
r2.3 0.902  0.707  1.000  0.955  0.000    0.000  0.000  0.000    0.000  0.707  0.051    0.000  1.074
r2.4 0.950  0.789  0.953  0.939  0.289    0.730  0.551  0.613    0.521  0.765  0.177    0.662  1.833
r2.5 1.000  0.577  0.707  0.734  0.866    0.577  0.707  0.577    0.577  0.577  0.457    0.577  2.649
r3.1 0.000 -0.729 -0.815 -0.832 -0.866   -1.095 -1.225  0.397    0.525 -0.590  0.159    0.382 -3.302
r3.2 0.000  0.000  0.000 -0.866 -0.866   -0.707 -0.110 -0.707    0.707  0.707  0.000   -0.707 -1.715
r3.3 0.000  0.000  0.000 -0.866 -0.866    0.707  0.110  0.707   -0.707 -0.707  0.100    0.707  1.274
r3.4 0.000 -0.707 -1.000 -0.955  0.000    0.000  0.000  0.000    0.000 -0.707  0.051    0.000 -0.658
r3.5 0.000 -1.092 -1.089 -1.051 -0.866   -1.095 -1.421 -1.688   -1.773 -1.103 -0.310   -1.591 -3.149
r3.6 0.000 -0.729 -0.815 -0.832 -0.866   -1.095 -1.225 -1.788   -1.773 -0.859 -3.662   -1.788 -3.302
r4.1 0.000 -0.729 -0.815 -0.832  0.289    0.730  0.816  0.464    0.484 -0.730  0.310    0.468  0.449
r4.2 0.000 -1.092 -1.334 -1.256  0.289    0.730  0.551  0.613    0.521 -1.085  0.177    0.662  0.101
r4.3 0.000 -1.155 -1.230 -1.194 -0.866   -1.155 -1.414 -1.155   -1.155 -1.155 -4.148   -1.155 -4.490
r4.4 0.000  0.000  0.000 -0.866 -0.866    0.000  0.000  0.000    0.000  0.000  0.000    0.000 -1.008
"""
SETTINGS = {
    "GiGPO": step_only(GIGPO),
    "HGPO": HGPO,
    "+base": HGPO_BASE,
    "SALT": SALT,
    "GraphGPO": step_only(GRAPHGPO_PUBLISHED),
    "CRBC": step_only(CRBC),
    "GRAFT": GRAFT,
    "distinct": graft(gae="distinct"),
    "path": graft(gae="path"),
    "l": raw(GRAPHHCA),
    "GraphHCA": step_only(GRAPHHCA),
    "G2PO": G2PO,
}


@pytest.mark.parametrize("name", SETTINGS)
def test_credit(name):
    assert flat(SETTINGS[name], example()) == near(column(CREDIT, name))


def test_the_step_credit_is_added_to_the_trajectory_s_advantage():
    step, trajectory = 5 * flat(step_only(CRBC), example()), flat({}, example())
    weighted = CRBC | {"trajectory": {"weight": 0.5}}
    assert flat(weighted, example()) == pytest.approx(step + trajectory / 2)


def test_returns_to_go():
    assert returns_to_go(parts()[0], 0.95, 0) == near(column(CREDIT, "G"))


@pytest.mark.parametrize(
    ("trajectory", "won", "lost"),
    [
        ({}, 0.8660, -0.8660),
        ({"rows": "cross_steps"}, 1.0865, -0.8692),
        ({"mode": "mean"}, 0.5, -0.5),
        ({"mode": "mean", "rows": "cross_steps"}, 0.5556, -0.4444),
        ({"mode": "loo"}, 0.6667, -0.6667),
    ],
)
def test_trajectory_advantage(trajectory, won, lost):
    expected = np.where(SUCCESS, won, lost)
    assert flat({"trajectory": trajectory}, example()) == near(expected, 4)


def test_hgpo_buckets():
    trajectories = example().trajectories
    turns = flatten(trajectories)
    buckets = set()
    for history in range(3):
        key = Key(history=history)
        state = with_history(states(trajectories, key), turns, key)
        for bucket in set(state.tolist()):
            members = np.flatnonzero((state == bucket) & (turns.time >= history))
            if len(members) > 1:
                buckets.add(" ".join(NAMES[i] for i in members))
    assert buckets == {
        "r1.1 r2.1 r3.1 r3.6 r4.1",
        "r1.2 r2.2 r2.4 r3.5 r4.2",
        "r1.3 r2.5 r4.3",
        "r2.3 r3.4",
        "r3.2 r3.3",
        "r1.2 r2.2 r4.2",
        "r2.4 r3.5",
        "r1.3 r4.3",
    }


def test_graphgpo_distances_and_raw_credit():
    _, graph = parts("observed", "observed")
    # the seventh state is the page that r4 lost on
    assert distances(graph).tolist() == [3, 2, 1, 3, 4, np.inf, np.inf, 0, np.inf]
    _, graph = parts()
    assert distances(graph).tolist() == [3, 2, 1, 3, 4, np.inf, 0, np.inf]
    # A a-> B, B a-> C, C take-> success, ...; F and failure are one step farther than E
    to = {"A": 0.01, "B": 0.1, "C": 1.0, "D": 0.01, "E": 0.001, "F": 1e-4, "+": 10.0, "-": 1e-4}
    for settings, ways in (
        (GRAPHGPO_PUBLISHED, "BC+BDBC+EEDBAEBCF-"),
        (GRAPHGPO, "BC+BDBC+EEDBA-BCF-"),
    ):
        ends = {name: settings[name] for name in ("timeout", "failure") if name in settings}
        assert flat(raw(settings) | ends, example()) == pytest.approx([to[x] for x in ways])
        paper = raw({"scale": 10, "terms": [GRAPHGPO["terms"][0] | {"exp": 1}]}) | ends
        assert flat(paper, example()) == pytest.approx([to[x] / 10 for x in ways])


@pytest.mark.parametrize(
    ("gamma", "depth", "agg", "mu", "digits", "expected"),
    [
        (0.98, "inf", 1, "count", 6, (0.452066, 0.585163, 0.653333, 0.573460, 0.550971, 0)),
        (0.98, 0, 1, "count", 6, (0.369023, 0.568634, 0.653333, 0.470596, 0, 0)),
        (0.98, 1, 1, "count", 6, (0.334357, 0.548725, 0.653333, 0.557261, 0.230592, 0)),
        (0.99, "inf", 1, "count", 6, (0.475376, 0.604697, 0.660000, 0.598650, 0.586796, 0)),
        (0.99, "inf", 1, "uniform", 4, (0.2788, 0.3793, 0.4950, 0.3755, 0.3680, 0)),
        (0.95, "inf", 1, "count", 6, (0.389203, 0.530749, 0.633333, 0.504211, 0.456191, 0)),
        (0.95, "inf", "max", "count", 6, (0.857375, 0.902500, 0.95, 0.857375, 0.814506, 0)),
        (0.95, 0, 1, "count", 6, (0.326231, 0.523901, 0.633333, 0.428687, 0, 0)),
    ],
)
def test_bellman_values(gamma, depth, agg, mu, digits, expected):
    turns, graph = parts()
    values = bellman(graph, turns, gamma, depth, agg, mu).state
    # E's own rollout only fails, but E is worth more than half because others go on from D
    assert values[:6] == near(expected, digits)
    assert values[6:].tolist() == [1, 0]


def test_one_backup_takes_q_from_the_mean_returns():
    of = group(("B take", "success"), ("B b, D back, B take", "success"), ("B drop", "failure"))
    turns = flatten(of.trajectories)
    graph = build_graph(states(of.trajectories, Key(), []), turns)
    values = bellman(graph, turns, 0.9, 1, 1, "count")
    # Mean returns: (0.9 + 0.9^3 + 0.9 + 0) / 4 in B, 0.9^2 in D.
    mean = (2 * 0.9 + 0.9**3) / 4
    assert values.state[:2] == pytest.approx([mean, 0.9 * mean])
    # Turns: take; b, back, take; drop.
    assert values.action[graph.pair] == pytest.approx([0.9, 0.9**3, 0.9 * mean, 0.9, 0])


@pytest.mark.parametrize(
    ("gae", "mu", "expected"),
    [
        ("none", "count", (0.123275, 0.048703, -0.012033, 0.105552, -0.134075)),
        ("instances", "count", (0.123275, 0.048703, -0.012033, 0.105552, -0.134075)),
        ("instances", "uniform", (0.190657, 0.265960, 0.080867, 0.176684, -0.085050)),
    ],
)
def test_graph_gae(gae, mu, expected):
    values = flat(raw(graft(gae=gae, mu=mu)), example())
    credits = [of_turn(values, turn) for turn in ("r1.1", "r1.2", "r2.2", "r3.1", "r3.5")]
    assert credits == near(expected, 6)


@pytest.mark.parametrize(
    ("timeout", "value", "scaled"),
    [("drop", 0.599660, (0.0889, -0.2667)), ("observed", 0.592713, (0.1418, -0.2128))],
)
def test_time_out_rule_of_crbc(timeout, value, scaled):
    turns, graph = parts(timeout)
    assert bellman(graph, turns, 0.98, "inf", 1, "count").state[0] == near(value, 6)
    values = flat(step_only(CRBC) | {"timeout": timeout}, example())
    # All turns of (A, b) share the value, also the turn that was not counted.
    by_turn = [of_turn(values, turn) for turn in ("r1.1", "r3.1", "r3.6")]
    assert by_turn == near([scaled[0], scaled[1], scaled[1]], 4)


def test_a_clamped_live_state_is_treated_as_dead():
    """GRAFT read literally: r3 was stopped in E, so E is worth 0 although r3 went on from there."""
    turns, graph = parts("clamp")
    values = bellman(graph, turns, 0.99, "inf", 1, "count").state
    assert values[:5] == near([0.339281, 0.571180, 0.66, 0.565469, 0], 6)
    for depth in (0, 1, "inf"):
        assert bellman(graph, turns, 0.9, depth, 1, "count").state[4] == 0
    rule = {"timeout": "clamp"}
    td = flat(raw(GRAFT) | rule, example())
    assert of_turn(td, "r3.3") == near(0.559814, 6)
    scaled = flat(GRAFT | rule, example())
    assert of_turn(scaled, "r3.1") == of_turn(scaled, "r3.6") == near(-1.0954, 4)
    assert of_turn(flat(GRAFT, example()), "r3.1") == near(0.397)


def test_the_greatest_value_does_not_pass_through_a_clamped_state():
    of = group(("A a, E", "timeout"), ("A b, E go, B a", "success"))
    turns = flatten(of.trajectories)
    state = states(of.trajectories, Key(), [0])
    for timeout, expected in (("observed", [0.9**3, 0.9**2, 0.9]), ("clamp", [0, 0, 0.9])):
        values = bellman(build_graph(state, turns, timeout), turns, 0.9, "inf", "max", "count")
        assert values.state[:3] == pytest.approx(expected)
    # Nor do the mean returns, from which backups start.
    clamped = build_graph(state, turns, "clamp")
    assert bellman(clamped, turns, 0.9, 0, 1, "count").state[1] == 0


def test_a_dropped_turn_is_no_part_of_the_statistics():
    term = {"value": "bellman", "gamma": 0.98, "credit": "Q-V", "pool": "action", "std": "pop"}
    values = flat(step_only({"terms": [term]}) | {"timeout": "drop"}, example())
    # of three a and one b: the fifth turn in A, r3.6, gets what b gets
    expected = {"r1.1": 3**-0.5, "r2.1": 3**-0.5, "r4.1": 3**-0.5, "r3.1": -(3**0.5)}
    for turn, value in expected.items():
        assert of_turn(values, turn) == pytest.approx(value, abs=1e-3)
    assert of_turn(values, "r3.6") == of_turn(values, "r3.1")


def test_penalty_on_returns():
    term = GIGPO["terms"][0] | {"std": "none"}
    settings = NO_TRAJECTORY | {"scale": 10, "invalid": "row", "penalty": 0.1, "terms": [term]}
    values = flat(settings, example())
    # The two returns in E are 0, and `look` is fined.
    assert [of_turn(values, turn) for turn in ("r3.2", "r3.3")] == pytest.approx([-0.05, 0.05])


def test_a_gate_of_two_actions_closes_a_state_with_one():
    """In D the returns differ, but both visits took the same action."""
    gated = flat(step_only({"terms": [GIGPO["terms"][0] | {"gate": "actions2"}]}), example())
    expected = column(CREDIT, "GiGPO")
    expected[NAMES.index("r2.3")] = expected[NAMES.index("r3.4")] = 0
    assert gated == near(expected)


def test_penalty_on_scores():
    by_row = {
        "scale": 10,
        "invalid": "row",
        "penalty": 0.1,
        "trajectory": {"rows": "cross_steps"},
    }
    values = flat(by_row, example())
    assert of_turn(values, "r3.2") == near(-0.8868, 4)
    assert of_turn(values, "r3.1") == near(-0.8673, 4)
    values = flat({"scale": 10, "invalid": "propagate", "penalty": 0.1}, example())
    assert [of_turn(values, f"r{k}.1") for k in (1, 2, 3, 4)] == near(
        [0.8660, 0.8660, -0.8746, -0.8574], 4
    )


def test_penalty_on_the_value_reached():
    settings = NO_TRAJECTORY | {"scale": 10, "terms": [SUCCESSOR | {"std": "none"}]}
    plain = flat(settings, example())
    fined = flat(settings | {"invalid": "succ", "penalty": 0.1}, example())
    # the mean of E's two turns moves by half of the penalty
    expected = {"r3.2": -0.05, "r3.3": 0.05}
    for turn in NAMES:
        assert of_turn(fined - plain, turn) == pytest.approx(expected.get(turn, 0), abs=1e-12)


def test_ecpo_state_by_hand():
    """B: Q - V is .081858 for a (3 visits), .305900 for b and -.551475 for c (1 each).

    Times 3/5, 1/3 and 1/3: .049115, .101967, -.183825; over the visits mean .013097, sample
    deviation .112437. The returns' variance is .203894, of which .083560 between actions.
    """
    step = flat(step_only(ECPO), example())
    credits = np.array([of_turn(step, turn) for turn in ("r1.2", "r2.2", "r3.5")])
    z = np.array([0.320338, 0.790396, -1.751408])
    assert credits == near(np.tanh(5 / 4) * 0.083560 / 0.203894 * z, 4)
    # In D the returns differ, but both visits took the same action.
    assert [of_turn(step, turn) for turn in ("r2.3", "r3.4")] == [0, 0]
    assert of_turn(flat(ECPO, example()), "r2.2") == near(0.8660 + 0.2748, 3)


def test_bipace_state_by_hand():
    """B: .081858 for a; b and c less the other four: 5/4 * .305900 and 5/4 * -.551475.

    Over the visits: mean -.012279, sample deviation .400236.
    """
    step = flat(step_only(BIPACE), example())
    credits = [of_turn(step, turn) for turn in ("r1.2", "r2.2", "r3.5")]
    assert credits == near([0.2352, 0.9861, -1.6917], 4)


def test_gagpo_by_hand():
    """TD errors of G2PO's values, summed along the rollout with decay .95 * .95."""
    td = [
        [0.171475, 0.077765, 0.316667],
        [0.171475, -0.116648, 0.069019, 0.077765, 0.316667],
        [-0.326231, 0, 0.407253, 0.069019, -0.213982, -0.326231],
        [0.171475, 0.077765, -0.633333, 0],
    ]
    sums = []
    for row in td:
        ahead = [sum(0.9025**k * error for k, error in enumerate(row[t:])) for t in range(len(row))]
        sums += ahead
    sums = np.array(sums)
    assert sums[:3] == near([0.499585, 0.363557, 0.316667], 5)
    expected = (sums - sums.mean()) / sums.std(ddof=1)
    assert flat(GAGPO, example()) == near(expected, 4)


def test_rtmc_by_hand():
    """Half of the rollouts won, so V' is (n V + 1) / (n + 2).

    A: r3 took b twice, which counts once: V = 2/4, Q = 2/3 and 0.
    B: r2 took b and a, which both count: V = 3/5, Q = 2/3, 1 and 0, V' = 4/7.
    """
    a, b, c = 2 / 3 - 4 / 7, 1 - 4 / 7, -4 / 7
    expected = {
        "A": ([2 / 3 - 1 / 2, -1 / 2], ["r1.1", "r3.6"]),
        "B": ([a, b, a, c], ["r1.2", "r2.2", "r2.4", "r3.5"]),
        "C": ([1 - 3 / 5, -3 / 5], ["r1.3", "r4.3"]),
        "D": ([1 / 2 - 2 / 4] * 2, ["r2.3", "r3.4"]),
        "E": ([-1 / 4] * 2, ["r3.2", "r3.3"]),
        "F": ([-1 / 3], ["r4.4"]),
    }
    values = flat(RTMC, example())
    for credits_, turns in expected.values():
        assert [of_turn(values, turn) for turn in turns] == pytest.approx(credits_)
    every = flat(NO_TRAJECTORY | {"terms": [RTMC_TERM | {"visits": "every"}]}, example())
    assert of_turn(every, "r1.1") == pytest.approx(2 / 3 - 3 / 7)


def test_leave_one_out_among_those_still_playing_by_hand():
    """The rollouts have 3, 5, 6 and 4 turns; the first two win."""
    third, half = 2 / 3, 1 / 2
    assert flat(TURN_LOO, example()) == pytest.approx(
        [third] * 3 + [third] * 3 + [1, 1] + [-third] * 3 + [-half, -1, 0] + [-third] * 3 + [-half]
    )
