"""Numbers of the state graph in the training log."""

import numpy as np
import pytest
from state_graph_example import (
    CRBC,
    CRBC_TERM,
    GIGPO,
    GRAFT,
    GRPO,
    METHODS,
    TRAJECTORY_CREDIT,
    example,
    flat,
    group,
    step_only,
)

from hgrpo.credit.base import Context
from hgrpo.credit.state_graph import Settings, make
from hgrpo.credit.state_graph.diagnostics import Correlation


def report(settings: dict, *groups) -> dict[str, float]:
    assigner = make(Settings.model_validate(settings), Context())
    for one in groups:
        assigner.assign(one)
    return assigner.report()


def test_the_example_counted_by_hand():
    row = report(CRBC, example())
    # D and F have one action: 3 of 18 turns get nothing
    assert row["step_nonzero_share"] == pytest.approx(15 / 18)
    # F was visited once, by r4; E twice, by r3 alone
    assert row["state_single_share"] == pytest.approx(1 / 18)
    assert row["state_one_rollout_share"] == pytest.approx(3 / 18)
    # the deviations of B (5 turns) and E (2) lie below 0.1
    assert row["step_floored_share"] == pytest.approx(7 / 18)
    # of the eleven (state, action) pairs, b in A had two outcomes
    assert row["action_stochastic_share"] == pytest.approx(1 / 11)
    step = flat(step_only(CRBC), example())
    trajectory = flat(GRPO, example())
    ratio = 5 * np.abs(step).mean() / np.abs(trajectory).mean()
    assert row["step_to_trajectory"] == pytest.approx(ratio)
    gigpo = flat(step_only(GIGPO), example())
    assert row["step_corr_gigpo"] == pytest.approx(np.corrcoef(step, gigpo)[0, 1])
    assert row["step_corr_gigpo"] == pytest.approx(0.65, abs=0.005)
    assert row["step_corr_grpo"] == pytest.approx(np.corrcoef(step, trajectory)[0, 1])


def test_groups_are_pooled_and_a_report_starts_anew():
    of = group(("A a, B a", "success"), ("A b, C a", "failure"))
    assigner = make(Settings.model_validate(GIGPO), Context())
    assigner.assign(example())
    assigner.assign(of)
    row = assigner.report()
    assert row["state_single_share"] == pytest.approx((1 + 2) / (18 + 4))
    steps = [flat(step_only(GIGPO), one) for one in (example(), of)]
    trajectory = [flat(GRPO, one) for one in (example(), of)]
    both = np.corrcoef(np.concatenate(steps), np.concatenate(trajectory))[0, 1]
    assert row["step_corr_grpo"] == pytest.approx(both)
    assert row["step_corr_gigpo"] == pytest.approx(1)
    assert assigner.report() == {}


def test_what_is_not_defined_is_not_there():
    assert report(GRPO, example()) == {}
    assert "step_floored_share" not in report(GIGPO, example())
    assert "step_to_trajectory" not in report(GRAFT, example())
    failures = report(CRBC, group(("A a, A b", "failure"), ("A a", "timeout")))
    assert failures["step_nonzero_share"] == 0
    assert {"step_corr_gigpo", "step_corr_grpo", "step_to_trajectory"}.isdisjoint(failures)
    assert report(CRBC, group(("", "failure"))) == {}


@pytest.mark.parametrize("method", METHODS)
def test_every_number_is_a_finite_float(method):
    for value in report(METHODS[method], example(), group(("A a", "success"))).values():
        assert type(value) is float
        assert np.isfinite(value)


def test_states_are_those_of_the_terms_that_look_at_them():
    of = example()
    for trajectory in of.trajectories:
        for turn in trajectory.turns:
            turn.state = ""
    terms = [term | {"key": {"state": "obs"}} for term in GIGPO["terms"]]
    row = report({"terms": [TRAJECTORY_CREDIT, *terms]}, of)
    assert row["state_single_share"] == pytest.approx(1 / 18)


def test_a_floor_that_never_binds_is_counted_as_such():
    term = CRBC_TERM | {"floor": 1e-3}
    assert report({"terms": [term]}, example())["step_floored_share"] == 0


def test_correlation_in_parts_is_that_of_the_whole():
    rng = np.random.default_rng(0)
    x = rng.normal(size=50)
    y = x + rng.normal(size=50)
    correlation = Correlation()
    for part in np.split(np.arange(50), [7, 20]):
        correlation.add(x[part], y[part])
    assert correlation.value() == pytest.approx(np.corrcoef(x, y)[0, 1])
    constant = Correlation()
    constant.add(x, np.ones(50))
    assert constant.value() is None
    assert Correlation().value() is None
