"""Invariants of the state graph, on random groups where possible.

Tests of one invariant share the number in their names.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_graph_example import (
    BIPACE,
    BY_ACTION,
    CRBC,
    CRBC_TERM,
    ECPO,
    G2PO,
    GAGPO_TERM,
    GAIN,
    GIGPO,
    GRAFT,
    GRAFT_TERM,
    GRAPHGPO,
    GRAPHGPO_PUBLISHED,
    GRAPHHCA,
    GRPO,
    HGPO,
    HGPO_BASE,
    METHODS,
    NO_TRAJECTORY,
    R1,
    RTMC_TERM,
    SALT,
    TRAJECTORY_CREDIT,
    TURN_LOO,
    credit,
    example,
    flat,
    group,
    raw,
    step_only,
)

from hgrpo.credit.base import Context, Group
from hgrpo.credit.state_graph import Settings, make
from hgrpo.credit.state_graph.graph import Graph, build_graph, flatten
from hgrpo.credit.state_graph.keys import states
from hgrpo.credit.state_graph.normalise import normalise
from hgrpo.credit.state_graph.settings import Key, Term
from hgrpo.credit.state_graph.values import bellman, distances, mc_mean, returns_to_go

METHOD = pytest.mark.parametrize("method", METHODS)

moves = st.lists(
    st.tuples(st.sampled_from("ABCDE"), st.sampled_from("abc"), st.sampled_from(["", "", "", "!"])),
    max_size=7,
).map(lambda steps: ", ".join(f"{state} {action}{mark}" for state, action, mark in steps))
ends = st.sampled_from(["success", "success", "failure", "timeout"])
rollouts = st.lists(st.tuples(moves, ends), min_size=1, max_size=6)
groups = rollouts.map(lambda members: group(*members))


# The same, but each ends in a situation, sometimes (Z) one that no turn was taken in.
seen_moves = st.tuples(moves, st.sampled_from("ABCDEZ")).map(lambda m: ", ".join(filter(None, m)))
seen_rollouts = st.lists(st.tuples(seen_moves, ends), min_size=1, max_size=6)
LOOKS_BACK = {"history": 2, "history_actions": True}
OBSERVED = {
    "GraphGPO": GRAPHGPO_PUBLISHED,
    "CRBC": CRBC | {"timeout": "observed"},
    "GRAFT": GRAFT | {"timeout": "clamp", "failure": "observed"},
    "G2PO": G2PO | {"timeout": "observed", "failure": "observed"},
    "SALT": SALT | {"timeout": "observed", "failure": "observed"},
    "similar": {
        "timeout": "observed",
        "terms": [GRAFT_TERM | {"key": {"state": "sim"}, "gae": "distinct"}],
    },
    "history": {
        "timeout": "observed",
        "failure": "observed",
        "terms": [CRBC_TERM | {"key": LOOKS_BACK, "depth": 3}],
    },
}

ALL_METHODS = METHODS | {f"{name} observed": method for name, method in OBSERVED.items()}
ALL = pytest.mark.parametrize("method", ALL_METHODS)


def built(of: Group, key: Key | None = None, timeout: str = "fail"):
    turns = flatten(of.trajectories)
    state = states(of.trajectories, key or Key())
    return turns, build_graph(state, turns, timeout)


def by_state(graph, values) -> list[np.ndarray]:
    return [values[graph.state == state] for state in range(graph.n_states)]


@METHOD
@pytest.mark.parametrize("members", [[], [("", "timeout")], [("", "failure"), ("", "success")]])
def test_groups_without_turns(method, members):
    assert [row.tolist() for row in credit(METHODS[method], group(*members))] == [[]] * len(members)


@given(of=groups)
@settings(max_examples=30)
def test_1_gigpo_is_its_own_formula(of):
    returns, states = [], []
    for trajectory in of.trajectories:
        length = len(trajectory.turns)
        states += [turn.observation for turn in trajectory.turns]
        returns += [trajectory.success * 0.95 ** (length - 1 - t) for t in range(length)]
    expected = []
    for state, own_return in zip(states, returns, strict=True):
        bucket = np.array([g for g, s in zip(returns, states, strict=True) if s == state])
        spread = bucket.std(ddof=1) if len(bucket) > 1 else 0.0
        expected.append((own_return - bucket.mean()) / (spread + 1e-6) if spread > 1e-12 else 0.0)
    key = {"state": "obs", "noop": "raw"}
    result = flat(step_only({"terms": [GIGPO["terms"][0] | {"key": key}]}), of)
    assert result == pytest.approx(expected, abs=1e-9)


@given(of=groups)
@settings(max_examples=30)
def test_2_crbc_of_depth_0_is_gigpo_averaged_over_actions(of):
    zero = raw({"terms": [CRBC_TERM | {"depth": 0}]})
    averaged = GIGPO["terms"][0] | {"gamma": 0.98, "pool": "action"}
    assert flat(zero, of) == pytest.approx(0.98 * flat(raw({"terms": [averaged]}), of), abs=1e-12)
    population = CRBC_TERM | {"depth": 0, "std": "pop"}
    weighted = flat(step_only({"terms": [CRBC_TERM | {"depth": 0}]}), of)
    assert weighted == pytest.approx(flat(step_only({"terms": [population]}), of), abs=1e-9)


@given(of=groups)
@settings(max_examples=30)
def test_3_crbc_is_grafts_td_error_averaged_over_actions(of):
    td = {"value": "bellman", "gamma": 0.98, "credit": "td"}
    pooled = flat(raw({"terms": [td | {"pool": "action"}]}), of)
    assert flat(raw(CRBC), of) == pytest.approx(pooled, abs=1e-12)


@given(of=groups, gae_lambda=st.floats(0, 1))
@settings(max_examples=25)
def test_4_graph_gae_over_occurrences_adds_nothing(of, gae_lambda):
    extended = GRAFT_TERM | {"gae": "instances", "gae_lambda": gae_lambda}
    result = flat(raw({"terms": [extended]}), of)
    assert result == pytest.approx(flat(raw(GRAFT), of), abs=1e-9)


@given(of=groups)
@settings(max_examples=25)
def test_5_credits_of_a_state_sum_to_zero(of):
    _, graph = built(of)
    methods = (GIGPO, GRAPHHCA, CRBC, ECPO, BIPACE)
    for method in (raw(GRAFT), raw(CRBC), *map(step_only, methods)):
        for bucket in by_state(graph, flat(method, of)):
            assert bucket.sum() == pytest.approx(0, abs=1e-8)


@given(of=groups)
@settings(max_examples=25)
def test_6_credits_telescope(of):
    turns, graph = built(of)
    played = [t for t in of.trajectories if t.turns]
    starts = graph.state[turns.time == 0]
    value = bellman(graph, turns, 0.99, "inf", 1, "count").state
    psi = np.log(np.maximum(bellman(graph, turns, 0.95, "inf", 1, "count").state, 0.01))
    mean = mc_mean(graph, returns_to_go(turns, 0.95, 1)).state
    td, ratio, gain = (
        [row for row in credit(method, of) if len(row)]
        for method in (raw(GRAFT), raw(GRAPHHCA), raw({"terms": [GAIN]}))
    )
    for i, trajectory in enumerate(played):
        won, length = trajectory.success, len(trajectory.turns)
        discounted = (0.99 ** np.arange(length) * td[i]).sum()
        assert discounted == pytest.approx(0.99**length * won - value[starts[i]])
        end = 0 if won else np.log(0.01)
        assert ratio[i].sum() == pytest.approx(end - psi[starts[i]])
        assert gain[i].sum() == pytest.approx(won - mean[starts[i]])


@given(of=groups, order=st.floats(1, 20))
@settings(max_examples=25)
def test_8_power_mean(of, order):
    turns, graph = built(of)
    mean, powered, most = (
        bellman(graph, turns, 0.95, "inf", agg, "count").state for agg in (1, order, "max")
    )
    shares = graph.shares("count")
    for state in range(graph.n_states):
        leaving = graph.state == state
        ahead = powered[graph.successor[leaving]]
        backed_up = 0.95 * (shares[leaving] @ ahead**order) ** (1 / order)
        assert powered[state] == pytest.approx(backed_up, rel=1e-6, abs=1e-9)
    assert (mean <= powered + 1e-9).all()
    assert (powered <= most + 1e-9).all()
    steps = distances(graph)
    assert most == pytest.approx(np.where(np.isfinite(steps), 0.95**steps, 0))


@given(of=groups, depth=st.integers(1, 4), order=st.sampled_from([1, 3]))
@settings(max_examples=30)
def test_8_finite_depth_of_a_power_mean_is_backups_one_by_one(of, depth, order):
    turns, graph = built(of)
    shares = graph.shares("uniform")
    values = mc_mean(graph, returns_to_go(turns, 0.9, 1)).state
    for _ in range(depth):
        powered = np.bincount(
            graph.state, shares * values[graph.successor] ** order, graph.n_states
        )
        values = np.concatenate([0.9 * powered ** (1 / order), [1, 0]])
    result = bellman(graph, turns, 0.9, depth, order, "uniform").state
    assert result == pytest.approx(values, abs=1e-9)


@ALL
@given(members=seen_rollouts, data=st.data())
@settings(max_examples=20)
def test_9_credit_is_finite_and_order_and_names_do_not_matter(method, members, data):
    chosen = ALL_METHODS[method]
    straight = credit(chosen, group(*members))
    lengths = [len(trajectory.turns) for trajectory in group(*members).trajectories]
    assert [row.shape for row in straight] == [(length,) for length in lengths]
    assert all(row.dtype == np.float64 and np.isfinite(row).all() for row in straight)
    order = data.draw(st.permutations(range(len(members))))
    permuted = credit(chosen, group(*(members[i] for i in order)))
    for place, index in enumerate(order):
        assert permuted[place] == pytest.approx(straight[index], abs=1e-9)
    renamed = str.maketrans("ABCDEZabc", "zQxWeVKLM")
    other = credit(chosen, group(*((m.translate(renamed), end) for m, end in members)))
    for row, again in zip(straight, other, strict=True):
        assert again == pytest.approx(row, abs=1e-9)


@ALL
@given(members=st.lists(st.tuples(seen_moves, st.sampled_from(["failure", "timeout"])), max_size=5))
@settings(max_examples=15)
def test_10_failures_alone_teach_nothing(method, members):
    for row in credit(ALL_METHODS[method], group(*members)):
        assert not row.any()


@METHOD
@pytest.mark.parametrize("number", [1, 4])
def test_11_identical_successes_teach_nothing_but_g2po_s_gain(method, number):
    for row in credit(METHODS[method], group(*[(R1, "success")] * number)):
        assert row.any() == (method == "G2PO")


def chain(name: str, length: int) -> str:
    return ", ".join(f"{name}{turn} a" for turn in range(length))


# They are as long as the example's rollouts, and no two share a state.
CHAINS = [
    (chain("P", 3), "success"),
    (chain("Q", 5), "success"),
    (chain("R", 6), "timeout"),
    (chain("S", 4), "failure"),
]


def test_13_without_shared_states_nothing_is_learnt_of_turns():
    of = group(*CHAINS)
    trajectory = flat(GRPO, of)
    for method in (GIGPO, CRBC, GRAPHHCA, SALT, HGPO_BASE, ECPO, BIPACE):
        assert flat(method, of) == pytest.approx(trajectory, abs=1e-12)
    # paid 10 for a success, so the 1e-6 beside the deviation weighs a tenth
    assert flat(GRAPHGPO, of) == pytest.approx(trajectory, abs=2e-6)
    by_turn = {"trajectory": {"rows": "cross_steps"}}
    based = HGPO_BASE | {"trajectory": {"weight": 0, "rows": "cross_steps"}}
    assert flat(based, of) == pytest.approx(flat(by_turn, of), abs=1e-12)
    assert not flat(HGPO, of).any()
    assert not flat(NO_TRAJECTORY | {"terms": [GRAFT_TERM | {"gate": "visits2"}]}, of).any()
    # V(s) = gamma V(x) on a chain, so the sign rule has only rounding to blow up
    assert not flat(GRAFT, of).any()


def test_14_the_same_rollouts_twice():
    members = example().trajectories
    once_turns, once = built(example())
    twice = Group([*members, *members], ("test",))
    turns, graph = built(twice)
    for agg in (1, "max"):
        values = bellman(once, once_turns, 0.98, "inf", agg, "count").state
        assert bellman(graph, turns, 0.98, "inf", agg, "count").state == pytest.approx(values)
    assert distances(graph).tolist() == distances(once).tolist()
    for method in (step_only(CRBC), HGPO):
        assert flat(method, twice)[:18] == pytest.approx(flat(method, example()), abs=1e-5)


@given(of=groups)
@settings(max_examples=25)
def test_15_reward_scale(of):
    for method in (GIGPO, G2PO, GRAFT | {"trajectory": {"weight": 1}}):
        # Rewards are so large that the 1e-6 added to a deviation does not count. At scale 1, a
        # small deviation is only a few hundred times as large.
        base, scaled = (flat(method | {"scale": scale}, of) for scale in (1e4, 1e5))
        assert scaled == pytest.approx(base, abs=1e-3)
    centred = {
        "trajectory": {"mode": "mean"},
        "terms": [GIGPO["terms"][0] | {"std": "none"}],
    }
    assert flat(centred | {"scale": 10}, of) == pytest.approx(10 * flat(centred, of), abs=1e-9)


@METHOD
def test_16_other_groups_change_nothing(method):
    assigner = make(Settings.model_validate(METHODS[method]), Context())
    alone = np.concatenate(assigner.assign(example()))
    assigner.assign(group(*CHAINS))
    assert np.concatenate(assigner.assign(example())).tolist() == alone.tolist()


@given(of=groups)
@settings(max_examples=25)
def test_17_bounds(of):
    turns, graph = built(of)
    for agg in (1, 4, "max"):
        values = bellman(graph, turns, 0.95, "inf", agg, "count").state[:-2]
        assert ((values >= 0) & (values <= 0.95 + 1e-12)).all()
    assert (np.abs(flat(raw(GRAPHHCA), of)) <= np.log(100) + 1e-12).all()
    n = graph.visits[graph.state]
    for method in (GIGPO, GRAPHGPO, GRAPHHCA):
        assert (np.abs(flat(step_only(method), of)) <= (n - 1) / np.sqrt(n) + 1e-9).all()


def test_17_rounding_takes_no_value_below_zero():
    """Large graphs full of loops, where most states cannot win."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        n = int(rng.integers(100, 300))
        state = np.concatenate([np.arange(n), rng.integers(n, size=2 * n)])
        successor = np.where(rng.random(3 * n) < 0.5, state, rng.integers(n, size=3 * n))
        successor = np.where(rng.random(3 * n) < 0.05, rng.integers(n, n + 2, 3 * n), successor)
        graph = Graph(n, n, state, state, successor)
        values = bellman(graph, None, 0.999, "inf", 1, "count").state
        assert values.min() >= 0


def test_18_depth_converges():
    limit = flat(raw(CRBC), example())
    turns, graph = built(example())
    start, first = (bellman(graph, turns, 0.98, depth, 1, "count").state for depth in (0, 1))
    move = np.abs(first - start).max()
    for depth in (1, 5, 20):
        values = flat(raw({"terms": [CRBC_TERM | {"depth": depth}]}), example())
        assert np.abs(values - limit).max() <= 2 * 0.98**depth / (1 - 0.98) * move


@pytest.mark.parametrize(("mask", "expected"), [(True, -1.0), (False, -0.6)])
def test_19_hgpos_mask(mask, expected):
    """Three visits with returns 0, 1/2 and 1; the upper two share their history too."""
    of = group(("Y a, S a", "failure"), ("X a, S a, T a", "success"), ("X a, S a", "success"))
    terms = [
        {
            "key": {"history": history},
            "value": "mc_mean",
            "gamma": 0.5,
            "credit": "G-V",
            "std": "pop",
            "weight": history + 2.0,
        }
        for history in (0, 1)
    ]
    values = credit(HGPO | {"drop_zero": mask, "terms": terms}, of)
    assert values[1][1] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    "scaling",
    [
        *({"std": std} for std in ("none", "sample", "pop")),
        *({"std": std, "gate": "sign"} for std in ("sample", "pop")),
        {"std": "pop", "scope": "task"},
        {"credit": "Q-V", "pool": "action", "std": "mu_pop", "floor": 0.1},
    ],
)
def test_22_rounding_is_no_signal(scaling):
    _, graph = built(example())
    noise = np.random.default_rng(0).uniform(-2e-13, 2e-13, 18)
    term = Term(**{"value": "bellman", "credit": "td"} | scaling)
    assert not normalise(noise, graph, term).credit.any()
    # noise that is ten orders of magnitude larger is a signal
    assert normalise(noise * 1e10, graph, term).credit.any()


def test_a_task_scope_compares_all_turns():
    term = TRAJECTORY_CREDIT | {"scope": "task", "std": "pop"}
    values = flat(NO_TRAJECTORY | {"terms": [term]}, example())
    assert values.mean() == pytest.approx(0, abs=1e-12)
    assert values.std() == pytest.approx(1, abs=1e-5)


@given(of=groups)
@settings(max_examples=25)
def test_evidence_neither_enlarges_credit_nor_turns_its_sign(of):
    plain = BY_ACTION | {"scope": "none"}
    before = flat(NO_TRAJECTORY | {"terms": [plain]}, of)
    shrunk = flat(NO_TRAJECTORY | {"terms": [plain | {"shrink": 2}]}, of)
    gated = flat(NO_TRAJECTORY | {"terms": [plain | {"variance_gate": 4}]}, of)
    for after in (shrunk, gated):
        assert (np.abs(after) <= np.abs(before) + 1e-12).all()
        assert (after * before >= 0).all()


@given(of=groups)
@settings(max_examples=25)
def test_rtmc_lies_between_no_prior_and_the_share_of_wins(of):
    """Q - V' moves from Q - V to Q - p as the prior grows."""
    terms = [RTMC_TERM | {"prior": prior} for prior in (0, 2, 1e9)]
    none, some, all_ = (flat(NO_TRAJECTORY | {"terms": [term]}, of) for term in terms)
    assert (np.minimum(none, all_) - 1e-9 <= some).all()
    assert (some <= np.maximum(none, all_) + 1e-9).all()
    wins = np.mean([trajectory.success for trajectory in of.trajectories])
    action_value = flat(NO_TRAJECTORY | {"terms": [terms[0] | {"prior": 1e9}]}, of) + wins
    assert ((action_value >= -1e-6) & (action_value <= 1 + 1e-6)).all()


@given(of=groups)
@settings(max_examples=25)
def test_gagpo_without_decay_is_its_td_error_and_with_all_of_it_the_return(of):
    """lambda 0: gamma V(x) - V(s). gamma = lambda = 1: R - V(s)."""
    term = GAGPO_TERM | {"scope": "none"}
    short = {key: value for key, value in term.items() if key != "gae"}
    td = flat(NO_TRAJECTORY | {"terms": [short]}, of)
    assert flat(NO_TRAJECTORY | {"terms": [term | {"gae_lambda": 0}]}, of) == pytest.approx(td)
    whole = term | {"gamma": 1.0, "gae_lambda": 1}
    against = {"value": "mc_mean", "credit": "G-V", "gamma": 1.0, "scope": "none"}
    expected = flat(NO_TRAJECTORY | {"terms": [against]}, of)
    assert flat(NO_TRAJECTORY | {"terms": [whole]}, of) == pytest.approx(expected, abs=1e-9)


@given(ends=st.lists(ends, min_size=1, max_size=6))
@settings(max_examples=20)
def test_leave_one_out_is_the_same_for_every_turn_of_equally_long_rollouts(ends):
    of = group(*(("A a, B b, C c", end) for end in ends))
    rloo = flat({"trajectory": {"mode": "loo"}}, of)
    assert flat(TURN_LOO, of) == pytest.approx(rloo, abs=1e-12)
