"""Knobs: what goes together, what is refused, and the methods that ship."""

import json

import numpy as np
import pytest
from places import PROJECT
from pydantic import ValidationError
from state_graph_example import (
    BIPACE,
    BY_ACTION,
    CRBC,
    CRBC_TERM,
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
    METHODS,
    R1,
    RTMC,
    RTMC_TERM,
    SALT,
    SUCCESSOR,
    TRAJECTORY_CREDIT,
    TURN_LOO,
    example,
    flat,
    group,
    raw,
    step_only,
)

from hgrpo.config.read import read_yaml
from hgrpo.credit.state_graph import Settings

FOLDER = PROJECT / "configs" / "methods"
FILES = {
    path.stem: data
    for path in sorted(FOLDER.glob("*.yaml"))
    if (data := read_yaml(path)).get("credit", {}).get("kind") == "state_graph"
}
G_V = {"value": "mc_mean", "credit": "G-V"}
TD = {"value": "bellman", "credit": "td"}
DIST = {"value": "dist", "credit": "dist_pow"}
TRAJ = {"value": "none", "credit": "traj"}

# These have the settings of their authors; the others share keys and ends.
AUTHORS = {"G2PO", "GRAFT", "GiGPO", "GraphGPO", "HGPO", "SALT"}


def knobs(name: str) -> dict:
    return {key: value for key, value in FILES[name]["credit"].items() if key != "kind"}


def on_the_example(name: str) -> dict:
    """The method's knobs; states that need a policy to tell apart are told apart as by default."""
    terms = [
        {
            key: value
            for key, value in term.items()
            if key != "key" or value.get("state") != "hidden"
        }
        for term in knobs(name).get("terms", [])
    ]
    return knobs(name) | {"terms": terms}


def test_the_methods_that_ship():
    ours = {"CRBC", "GraphHCA", "RLOO", "BiPACE", "ECPO", "GAGPO", "RTMC", "TurnLOO"}
    shared = {f"{name}_shared" for name in ("G2PO", "GiGPO", "GraphGPO", "SALT")}
    assert set(FILES) == AUTHORS | ours | shared | {"HGPO_with_flat", "GRAFT_with_flat"}


@pytest.mark.parametrize("name", FILES)
def test_a_shipped_method_is_complete(name):
    data = FILES[name]
    assert data["name"] == name
    # The assigner's credit is already the advantage and includes the trajectory's.
    assert data["alpha"] == 0
    assert data["turn_norm"] == "none"
    settings = Settings.model_validate(knobs(name))
    assert settings.model_fields_set == set(knobs(name))
    values = flat(on_the_example(name), example())
    assert np.isfinite(values).all()
    assert values.any()


@pytest.mark.parametrize("name", FILES)
def test_a_resolved_config_is_read_again(name):
    settings = Settings.model_validate(knobs(name))
    text = json.dumps(settings.model_dump(mode="json"), allow_nan=False)
    assert Settings.model_validate_json(text) == settings


@pytest.mark.parametrize("name", [name for name in FILES if name not in AUTHORS])
def test_our_defaults_tell_states_and_ends_apart_in_one_way(name):
    settings = Settings.model_validate(knobs(name))
    assert (settings.timeout, settings.failure) == ("fail", "absorb")
    assert settings.invalid == "none"
    # What sets these two apart is the rule itself.
    assert settings.trajectory.rows == ("alive" if name == "TurnLOO" else "once")
    state = "hidden" if name == "BiPACE" else "struct"
    assert {(term.key.state, term.key.noop) for term in settings.terms} <= {(state, "carry")}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("GiGPO_shared", GIGPO),
        ("HGPO_with_flat", HGPO_BASE | {"drop_zero": False}),
        ("HGPO", HGPO | {"scale": 10, "invalid": "row"}),
        ("SALT_shared", SALT),
        ("SALT", SALT),
        ("GraphGPO_shared", GRAPHGPO),
        ("GraphGPO", GRAPHGPO_PUBLISHED),
        ("CRBC", CRBC),
        ("GRAFT_with_flat", {"terms": [{"value": "bellman", "gamma": 0.99, "credit": "td"}]}),
        ("GRAFT", GRAFT | {"timeout": "clamp"}),
        ("GraphHCA", GRAPHHCA),
        ("G2PO_shared", G2PO),
        ("RLOO", {"trajectory": {"mode": "loo"}}),
        ("ECPO", ECPO),
        ("BiPACE", BIPACE),
        ("GAGPO", GAGPO),
        ("RTMC", RTMC),
        ("TurnLOO", TURN_LOO),
        (
            "GiGPO",
            GIGPO | {"scale": 10, "invalid": "row", "trajectory": {"rows": "cross_steps"}},
        ),
        (
            "G2PO",
            G2PO | {"scale": 10, "invalid": "succ", "trajectory": {"rows": "cross_steps"}},
        ),
    ],
)
def test_a_shipped_method_computes_what_the_example_was_checked_with(name, settings):
    # In the example observation, state and commands tell the same states apart.
    assert flat(on_the_example(name), example()).tolist() == flat(settings, example()).tolist()


def test_every_method_file_is_in_the_test_above():
    marks = test_a_shipped_method_computes_what_the_example_was_checked_with.pytestmark
    assert {row[0] for row in marks[0].args[1]} == set(FILES)


@pytest.mark.parametrize(
    ("term", "message"),
    [
        (G_V | {"credit": "Q-V"}, "credit: Q-V is not a credit of value: mc_mean"),
        (TD | {"credit": "G-V"}, "credit: G-V is not a credit of value: bellman"),
        (TRAJ | {"credit": "td"}, "credit: td is not a credit of value: none"),
        (DIST | {"credit": "succ"}, "credit: succ is not a credit of value: dist; dist_pow"),
        (DIST | {"gamma": 0.9}, "gamma: 0.9 is read only with value: mc_mean or bellman"),
        (TD | {"exp": 1}, "exp: 1 is read only with"),
        (G_V | {"depth": 2}, "depth: 2 is read only with value: bellman"),
        (G_V | {"agg": "max"}, "agg: max is read only with value: bellman"),
        (TD | {"depth": 0, "agg": 2.0}, "agg: 2.0 is read only with value: bellman and depth"),
        (G_V | {"mu": "uniform"}, "mu: uniform is read only with"),
        (TD | {"agg": "max", "mu": "uniform"}, "mu: uniform is read only with"),
        (TD | {"base": 0.5}, "base: 0.5 is read only with value: dist"),
        (TD | {"log_floor": 0.1}, "log_floor: 0.1 is read only with credit: logratio"),
        (G_V | {"gae": "path"}, "gae: path is read only with credit: td"),
        (TD | {"gae_lambda": 0.5}, "gae_lambda: 0.5 is read only with gae"),
        (TD | {"scope": "none", "std": "pop"}, "std: pop is read only with scope"),
        (TD | {"std": "none", "floor": 0.1}, "floor: 0.1 is read only with a scope and a std"),
        (TD | {"scope": "none", "floor": 0.1}, "floor: 0.1 is read only with a scope and a std"),
        (TD | {"scope": "task", "gate": "actions2"}, "gate: actions2 is read only with scope"),
        (TRAJ | {"scope": "none", "key": {"history": 1}}, "key: .* is read only with a credit"),
        (CRBC_TERM | {"pool": "turn"}, "pool: turn with credit: Q-V"),
        (TD | {"pool": "transition"}, "pool: transition changes nothing with credit: td"),
        (TD | {"value": "mc_mean"}, "exp: 0 with credit: td"),
        (TD | {"agg": "max", "depth": 3}, "depth: 3 with agg: max"),
        (DIST | {"std": "mu_pop"}, "std: mu_pop with scope: state and credit: dist_pow"),
        (TD | {"std": "mu_pop", "scope": "task"}, "std: mu_pop with scope: task"),
        (TD | {"std": "none", "gate": "sign"}, "gate: sign with std: none"),
        (DIST | {"gate": "sign"}, "gate: sign with std: sample and credit: dist_pow"),
        (TD | {"key": {"theta": 0.8}}, "theta: 0.8 is read only with state: sim or hidden"),
        (TD | {"visits": "first"}, "visits: first is read only with credit: G-V"),
        (G_V | {"pool": "transition", "visits": "first"}, "visits: first is read only with"),
        (G_V | {"prior": 2}, "prior: 2.0 is read only with credit: G-V and scope: task or none"),
        (G_V | {"shrink": 2}, "shrink: 2.0 is read only with credit: G-V and pool: action"),
        (CRBC_TERM | {"shrink": 2}, "shrink: 2.0 is read only with credit: G-V and pool: action"),
        (BY_ACTION | {"lone": "loo", "shrink": 2}, "lone: loo is read only with .* no shrink"),
        (RTMC_TERM | {"lone": "loo"}, "lone: loo is read only with .* no shrink or prior"),
        (G_V | {"variance_gate": 4}, "variance_gate: 4.0 is read only with credit: G-V and pool"),
        (BY_ACTION | {"variance_gate": 0}, "variance_gate"),
        (TD | {"key": {"history_actions": True}}, "history_actions: True is read only with"),
        (TD | {"gamma": 1.5}, "gamma"),
        (TD | {"agg": 0.5}, "agg"),
        (TD | {"depth": -1}, "depth"),
        (TD | {"weight": 0}, "weight"),
        (TD | {"lambda": 0.5}, "lambda"),
        ({"value": "bellman"}, "credit"),
    ],
)
def test_a_term_that_makes_no_sense_is_refused(term, message):
    with pytest.raises(ValidationError, match=message):
        Settings.model_validate({"terms": [term]})


SILENT = {"weight": 0}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"trajectory": SILENT}, "trajectory.weight: 0 without terms"),
        ({"mixture": "renormalise_present"}, "mixture: renormalise_present without terms"),
        (GIGPO | {"drop_zero": True}, "drop_zero: True is read only with mixture"),
        (GIGPO | {"penalty": 0.2}, "penalty: 0.2 is read only with invalid"),
        (GIGPO | {"trajectory": {"weight": 0, "mode": "loo"}}, "trajectory.mode: loo is read only"),
        (
            GIGPO | {"trajectory": {"weight": 0, "rows": "cross_steps"}},
            "trajectory.rows: cross_steps is read only",
        ),
        (
            {"trajectory": {"mode": "loo", "rows": "cross_steps"}},
            "rows: cross_steps with mode: loo",
        ),
        (GIGPO | {"invalid": "succ"}, "invalid: succ without a term of credit: succ"),
        (
            GIGPO | {"invalid": "propagate", "trajectory": SILENT},
            "invalid: propagate without a trajectory.weight",
        ),
        (GIGPO | {"invalid": "row"}, "invalid: row with trajectory.rows: once"),
        (CRBC | {"invalid": "row"}, "invalid: row with credit: Q-V"),
        ({"timeout": "drop"}, "timeout: drop with value: no terms"),
        (GIGPO | {"timeout": "drop"}, "timeout: drop with value: mc_mean"),
        (SALT | {"timeout": "drop"}, "timeout: drop with value: none"),
        (
            {"timeout": "drop", "terms": [GRAFT_TERM | {"gamma": 1.0}]},
            "timeout: drop with gamma: 1.0",
        ),
        (
            {"timeout": "observed", "terms": [GRAFT_TERM | {"gamma": 1.0}]},
            "timeout: observed with gamma: 1.0",
        ),
        (
            {"failure": "observed", "terms": [GRAFT_TERM | {"gamma": 1.0}]},
            "failure: observed with gamma: 1.0",
        ),
        ({"timeout": "observed"}, "timeout: observed without a term that looks at where"),
        (GIGPO | {"timeout": "observed"}, "timeout: observed without a term"),
        (GIGPO | {"failure": "observed"}, "failure: observed without a term"),
        (
            {"timeout": "observed", "terms": [CRBC_TERM | {"depth": 0}]},
            "timeout: observed without a term",
        ),
        (GRAPHGPO | {"timeout": "clamp"}, "timeout: clamp with value: dist; only bellman"),
        (G2PO | {"timeout": "clamp"}, "timeout: clamp with value: mc_mean; only bellman"),
        ({"timeout": "clamp"}, "timeout: clamp with value: no terms"),
        (CRBC | {"scale": 10}, "scale: 10.0 with a floor"),
        (GRAPHHCA | {"scale": 10}, "scale: 10.0 with a log_floor"),
        (
            {"timeout": "observed", "terms": [TD | {"key": {"state": "hidden"}}]},
            "timeout: observed with key.state: hidden",
        ),
        (GIGPO | {"scale": 0}, "scale"),
        (GIGPO | {"sink": "fail"}, "sink"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ValidationError, match=message):
        Settings.model_validate(settings)


@pytest.mark.parametrize(
    ("base", "changes"),
    [
        (TD, {"key": {"history": 1}}),
        (TD, {"gamma": 0.5}),
        (TD, {"depth": 1}),
        (TD, {"agg": 5}),
        (TD, {"agg": "max"}),
        (TD, {"mu": "uniform"}),
        (TD, {"pool": "action"}),
        (TD, {"gae": "distinct"}),
        (TD, {"gae": "path"}),
        (TD | {"gae": "path"}, {"gae_lambda": 0.5}),
        (TD, {"scope": "task"}),
        (TD, {"scope": "none"}),
        (TD, {"std": "none"}),
        (TD, {"std": "pop"}),
        (TD, {"std": "mu_pop"}),
        (TD, {"floor": 0.5}),
        (TD, {"weight": 2}),
        (CRBC_TERM | {"depth": 0}, {"mu": "uniform"}),
        (DIST, {"base": 0.9}),
        (DIST | {"scope": "none"}, {"exp": 1}),
        (G_V, {"gamma": 0.5}),
        (G_V | {"std": "none"}, {"exp": 1}),
        (G_V, {"pool": "transition"}),
        (G_V, {"gate": "actions2"}),
        (TRAJ | {"scope": "none"}, {"pool": "action"}),
        (TRAJ, {"scope": "none"}),
        (TD | {"credit": "logratio"}, {"log_floor": 0.5}),
        (TRAJ | {"pool": "transition"}, {"key": {"history": 1}}),
        (BY_ACTION, {"shrink": 2}),
        (BY_ACTION, {"lone": "loo"}),
        (BY_ACTION, {"variance_gate": 4}),
        (BY_ACTION | {"variance_gate": 4}, {"variance_gate": 1}),
        (BY_ACTION | {"scope": "none"}, {"visits": "first"}),
        (G_V | {"scope": "task"}, {"prior": 2}),
    ],
)
def test_a_turned_knob_changes_the_credit(base, changes):
    before = flat({"terms": [base]}, example())
    after = flat({"terms": [base | changes]}, example())
    assert np.abs(before - after).max() > 1e-3


@pytest.mark.parametrize(
    ("base", "changes"),
    [
        (CRBC, {"timeout": "drop"}),
        (CRBC, {"timeout": "observed"}),
        (CRBC, {"timeout": "clamp"}),
        (GRAPHGPO, {"timeout": "observed"}),
        (GIGPO, {"invalid": "propagate"}),
        (GIGPO | {"invalid": "propagate"}, {"penalty": 0.4}),
        ({"terms": [SUCCESSOR | {"std": "none"}]}, {"invalid": "succ"}),
        (GIGPO | {"trajectory": {"rows": "cross_steps"}}, {"invalid": "row"}),
        (GIGPO, {"trajectory": {"weight": 0.5}}),
        (GIGPO, {"trajectory": {"mode": "loo"}}),
        (GIGPO, {"trajectory": {"rows": "cross_steps"}}),
        (GIGPO, {"trajectory": {"rows": "alive"}}),
        (HGPO_BASE, {"drop_zero": False}),
        (HGPO_BASE | {"drop_zero": False}, {"mixture": "sum"}),
        ({"terms": [G_V | {"std": "none"}]}, {"scale": 2}),
    ],
)
def test_a_turned_switch_changes_the_credit(base, changes):
    before, after = flat(base, example()), flat(base | changes, example())
    assert np.abs(before - after).max() > 1e-3


# Some rollouts end in states from which others win.
LIVE = [
    ("A a, B b, C c, A a, B d", "success"),
    ("A a, B b, C", "failure"),
    ("B e, A", "failure"),
    ("C c, A", "timeout"),
    ("C d, B d", "success"),
    ("A e, B", "timeout"),
]


@pytest.mark.parametrize("rule", [{"timeout": "observed"}, {"failure": "observed"}])
@pytest.mark.parametrize("method", [CRBC, GRAFT, GRAPHHCA, GRAPHGPO, G2PO, SALT])
def test_where_the_last_turn_led_changes_the_credit(method, rule):
    before, after = flat(method, group(*LIVE)), flat(method | rule, group(*LIVE))
    assert np.abs(before - after).max() > 1e-3


@pytest.mark.parametrize("method", [GIGPO, GRAFT, GRAPHGPO, {"terms": [SUCCESSOR]}, SALT])
def test_a_success_that_pays_ten_times_gives_ten_times_the_credit(method):
    unpaid = {key: value for key, value in method.items() if key != "scale"}
    trajectory = {"trajectory": {"weight": 0, "mode": "mean"}} if method is SALT else {}
    one = flat(raw(unpaid) | trajectory, example())
    assert flat(raw(unpaid) | trajectory | {"scale": 10}, example()) == pytest.approx(10 * one)


def test_a_state_visited_once_has_a_say_under_the_sign_rule():
    gain = {"value": "mc_mean", "exp": 1, "credit": "gain", "weight": 3}
    mean = {"mixture": "renormalise_present", "trajectory": SILENT}
    once = group((R1, "success"))
    # The other term of the mean is the trajectory's credit, which is 0 for a single rollout.
    for gate, expected in (("sign", 3 / 4), ("visits2", 0)):
        terms = [TRAJECTORY_CREDIT, gain | {"gate": gate}]
        assert flat(mean | {"terms": terms}, once) == pytest.approx([expected] * 3)
    won = group((R1, "success"), ("F buy", "failure"))
    trajectory = flat(METHODS["GRPO"], won)
    for gate, says in (("sign", 3 / 4), ("visits2", None)):
        values = flat(mean | {"terms": [TRAJECTORY_CREDIT, gain | {"gate": gate}]}, won)
        expected = trajectory / 4 + says * (trajectory > 0) if says else trajectory
        assert values == pytest.approx(expected)


def test_the_sign_rule_speaks_for_states_visited_once():
    gain = {"value": "mc_mean", "exp": 1, "credit": "gain"}
    once = group((R1, "success"))
    assert flat({"terms": [gain | {"gate": "sign"}]}, once).tolist() == [1, 1, 1]
    assert flat({"terms": [gain]}, once).tolist() == [0, 0, 0]


def test_a_trajectory_credit_normalised_per_state_is_gigpo_without_discount():
    """Up to the scale of the scores, which a deviation takes out."""
    plain = flat(step_only({"terms": [TRAJ]}), example())
    undiscounted = flat(step_only({"terms": [G_V | {"gamma": 1.0}]}), example())
    assert plain == pytest.approx(undiscounted, abs=1e-5)


def test_the_bare_trajectory_credit_as_a_term_is_the_trajectory_term():
    term = {"trajectory": {"weight": 0}, "terms": [TRAJECTORY_CREDIT]}
    assert flat(term, example()).tolist() == flat(METHODS["GRPO"], example()).tolist()
