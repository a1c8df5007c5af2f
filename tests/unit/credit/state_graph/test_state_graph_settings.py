"""Settings of the state graph: refusals, and the shipped methods."""

import json

import pytest
from places import PROJECT
from pydantic import ValidationError
from state_graph_example import (
    BIPACE,
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


@pytest.mark.parametrize("name", FILES)
def test_a_shipped_method_is_complete(name):
    data = FILES[name]
    assert data["name"] == name
    # The assigner's credit is already the advantage and includes the trajectory's.
    assert data["alpha"] == 0
    assert data["turn_norm"] == "none"
    settings = Settings.model_validate(knobs(name))
    assert settings.model_fields_set == set(knobs(name))
    text = json.dumps(settings.model_dump(mode="json"), allow_nan=False)
    assert Settings.model_validate_json(text) == settings


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
        (G_V | {"credit": "Q-V"}, "Q-V` is not supported with `value: mc_mean`; use G-V, gain"),
        (G_V | {"depth": 2}, "depth: 2 has an effect only with value: bellman"),
        (TD | {"agg": "max", "depth": 3}, "depth: 3 has an effect only with value: bellman"),
        (
            TD | {"depth": 0, "agg": 2.0},
            "agg: 2.0 has an effect only with value: bellman and depth",
        ),
        (TD | {"agg": "max", "mu": "uniform"}, "mu: uniform has an effect only with"),
        (
            TRAJ | {"scope": "none", "key": {"history": 1}},
            "key: .* has an effect only with a credit",
        ),
        (TD | {"value": "mc_mean"}, "with `credit: td`, `exp: 0` leaves"),
        (DIST | {"std": "mu_pop"}, "`std: mu_pop` requires `scope: state` and a credit that is"),
        (TD | {"std": "mu_pop", "scope": "task"}, "`std: mu_pop` requires `scope: state`"),
        (
            TD | {"std": "none", "gate": "sign"},
            "`gate: sign` requires .*; it also requires `std: sample`",
        ),
        (DIST | {"gate": "sign"}, "`gate: sign` requires `scope: state` and a credit that is"),
        (
            G_V | {"prior": 2},
            "prior: 2.0 has an effect only with credit: G-V and scope: task or none",
        ),
        (RTMC_TERM | {"lone": "loo"}, "lone: loo has an effect only with .* no shrink or prior"),
        (TD | {"key": {"theta": 0.8}}, "theta: 0.8 has an effect only with state: sim or hidden"),
    ],
)
def test_a_term_that_makes_no_sense_is_refused(term, message):
    with pytest.raises(ValidationError, match=message):
        Settings.model_validate({"terms": [term]})


SILENT = {"weight": 0}
UNDISCOUNTED = [GRAFT_TERM | {"gamma": 1.0}]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"trajectory": SILENT}, "`trajectory.weight: 0` requires"),
        (
            {"mixture": "renormalise_present"},
            "renormalise_present has an effect only with terms",
        ),
        (
            GIGPO | {"trajectory": {"weight": 0, "mode": "loo"}},
            "trajectory.mode: loo has an effect only",
        ),
        ({"trajectory": {"mode": "loo", "rows": "cross_steps"}}, "`rows: cross_steps` requires"),
        (CRBC | {"scale": 10}, "scale: 10.0: `floor` requires"),
        *(
            (base | {"invalid": rule}, f"invalid: {rule} has an effect only with")
            for rule, base in (
                ("succ", GIGPO),
                ("propagate", GIGPO | {"trajectory": SILENT}),
                ("row", GIGPO),
                ("row", CRBC | {"trajectory": {"rows": "cross_steps"}}),
            )
        ),
        *(
            (base | {"timeout": rule}, f"timeout: {rule} has an effect only with")
            for rule, base in (
                *(("drop", base) for base in ({}, GIGPO, SALT, {"terms": UNDISCOUNTED})),
                *(("observed", base) for base in ({}, GIGPO, {"terms": UNDISCOUNTED})),
                *((rule, {"terms": [CRBC_TERM | {"depth": 0}]}) for rule in ("observed", "clamp")),
                ("observed", {"terms": [TD | {"key": {"state": "hidden"}}]}),
                *(("clamp", base) for base in ({}, GRAPHGPO, G2PO)),
            )
        ),
        (GIGPO | {"failure": "observed"}, "failure: observed has an effect only with"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ValidationError, match=message):
        Settings.model_validate(settings)


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


def test_a_trajectory_credit_normalised_per_state_is_gigpo_without_discount():
    """Up to the scale of the scores, which a deviation takes out."""
    plain = flat(step_only({"terms": [TRAJ]}), example())
    undiscounted = flat(step_only({"terms": [G_V | {"gamma": 1.0}]}), example())
    assert plain == pytest.approx(undiscounted, abs=1e-5)


def test_the_bare_trajectory_credit_as_a_term_is_the_trajectory_term():
    term = {"trajectory": {"weight": 0}, "terms": [TRAJECTORY_CREDIT]}
    assert flat(term, example()).tolist() == flat(METHODS["GRPO"], example()).tolist()
