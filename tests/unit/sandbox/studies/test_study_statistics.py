"""Metrics, intervals and verdicts of studies against hand computation."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from study_files import rows, study

from hgrpo.errors import UserError
from hgrpo.sandbox.studies.measures import measure
from hgrpo.sandbox.studies.statistics import arm_table, pair_table
from hgrpo.sandbox.studies.study import Metric

NAN = float("nan")


@pytest.mark.parametrize(
    ("metric", "values", "reached"),
    [
        ({"at": "end"}, [0.25, 0.5], [True, True]),
        ({"at": "first"}, [0.75, 1.0], [True, True]),
        # Seed 1 has no value at 10 updates; its last one is from the beginning.
        ({"until": 10}, [0.5, 1.0], [True, True]),
        ({"at": "mean"}, [0.5, 0.75], [True, True]),
        # Seed 0 is there at its third evaluation, after 20 updates; seed 1 never, and ends at 20.
        ({"at": "time", "below": 0.3}, [20, 20], [True, False]),
        ({"at": "time", "below": 0.5, "clock": "step"}, [4, 8], [True, True]),
        ({"at": "time", "above": 0.9}, [20, 0], [False, True]),
    ],
)
def test_a_metric_is_one_number_a_seed(metric, values, reached):
    # The first seed's error is 0.75, 0.5, 0.25; the second's lacks its second evaluation.
    log = rows("error", [0.75, 0.5, 0.25], [1.0, NAN, 0.5], updates=[0, 10, 20])
    measured = measure(log, Metric(column="error", **metric), "A")
    assert measured.values.tolist() == values and measured.reached.tolist() == reached


def test_a_column_that_only_trained_steps_have_ends_with_the_last_of_them():
    log = rows("loss", [3.0, 2.0, NAN])
    assert measure(log, Metric(column="loss"), "A").values.tolist() == [2.0]
    with pytest.raises(UserError, match=r"metric: arm 'A' has no column 'los'; did you mean"):
        measure(log, Metric(column="los"), "A")
    with pytest.raises(UserError, match="^metric: loss: seed 0 of arm 'A' logs no value"):
        measure(log, Metric(column="loss", until=-1, clock="step"), "A")


def test_a_slope_is_a_power_of_the_clock():
    # The first seed's variance is horizon ** 2, the second's 8 / horizon.
    log = rows("variance", [4.0, 16.0, 64.0], [4.0, 2.0, 1.0], horizon=[2, 4, 8])
    metric = Metric(column="variance", at="slope", clock="horizon")
    assert measure(log, metric, "A").values == pytest.approx([2, -1])
    assert metric.text == "slope of log variance over log horizon"


def last(*ends: float) -> pd.DataFrame:
    return rows("test_error", *([1.0, end] for end in ends), updates=[0, 10])


def test_a_pair_is_compared_seed_by_seed():
    # Differences -0.2, -0.3, -0.4: mean -0.3, deviation 0.1, standard error 0.1 / sqrt(3). The t
    # quantile of 97.5 % with 2 degrees of freedom is 4.302653.
    arms = {"A": last(0.1, 0.2, 0.3), "B": last(0.3, 0.5, 0.7)}
    (row,) = pair_table(study(), arms).to_dict("records")
    half = 4.302653 * 0.1 / 3**0.5
    assert row["difference"] == pytest.approx(-0.3)
    assert [row["lower"], row["upper"]] == pytest.approx([-0.3 - half, -0.3 + half])
    assert row["effect"] == pytest.approx(-3)
    t = 3 * 3**0.5
    assert row["p_holm"] == row["p"] == pytest.approx(1 - t / (2 + t * t) ** 0.5)
    assert row["verdict"] == "better"
    higher = {"column": "test_error", "better": "higher"}
    neither = {"column": "test_error"}
    assert pair_table(study(metric=higher), arms)["verdict"].item() == "worse"
    assert pair_table(study(metric=neither), arms)["verdict"].item() == "lower"


def test_holm_corrects_over_the_pairs_that_ask_a_question():
    arms = {
        "A": last(0.1, 0.2, 0.3),
        "B": last(0.3, 0.5, 0.7),
        "A, other seeds": last(0.1, 0.4, 0.3),
    }
    declared = study(pairs=[["A", "B"], ["B", "A"]], identical=[["A", "A"]], again="A")
    table = pair_table(declared, arms)
    tested = table[table["kind"] == "pair"]
    assert tested["p_holm"].tolist() == pytest.approx((2 * tested["p"]).tolist())
    assert table["kind"].tolist() == ["pair", "pair", "identical", "again"]
    assert table["p_holm"].isna().tolist() == [False, False, True, True]
    # The A/A differences are 0, 0.2, 0: mean 0.2 / 3, standard error 0.2 / 3.
    assert table["upper"].iloc[-1] == pytest.approx((1 + 4.302653) * 0.2 / 3)


@pytest.mark.parametrize(
    ("margin", "verdict", "claim"), [(0.5, "equivalent", "holds"), (0.1, "inconclusive", "open")]
)
def test_equal_arms_are_equivalent_only_within_the_declared_margin(margin, verdict, claim):
    arms = {"A": last(0.1, 0.2, 0.3), "B": last(0.2, 0.2, 0.2)}
    metric = {"column": "test_error", "margin": margin}
    declared = study(metric=metric, pairs=[["A", "B", "equivalent"]])
    (row,) = pair_table(declared, arms).to_dict("records")
    assert (row["verdict"], row["claim"]) == (verdict, claim)


def test_an_arm_can_be_compared_with_a_number_and_a_claim_can_fail():
    arms = {"A": last(0.59, 0.6, 0.61), "B": last(0.5, 0.5, 0.5)}
    metric = {"column": "test_error", "margin": 0.05}
    pairs = [["A", 0.5, "equivalent"], ["B", 0.5, "equivalent"]]
    table = pair_table(study(metric=metric, pairs=pairs), arms)
    assert table["difference"].tolist() == pytest.approx([0.1, 0])
    assert table["verdict"].tolist() == ["higher", "equivalent"]
    assert table["claim"].tolist() == ["fails", "holds"]


def test_times_are_restricted_to_the_horizon_of_both_arms():
    metric = {"column": "test_error", "at": "time", "below": 0.5, "better": "lower"}
    # A gets there after 10 and 20 updates, but one seed of B was followed for 10 only.
    clock = {"updates": [0, 10, 20]}
    mine = rows("test_error", [1.0, 0.4, 0.4], [1.0, 0.9, 0.5], **clock)
    theirs = rows("test_error", [1.0, 0.9], [1.0, 0.5], updates=[0, 10])
    (row,) = pair_table(study(metric=metric), {"A": mine, "B": theirs}).to_dict("records")
    assert row["difference"] == 0.0
    table = arm_table(study(metric=metric), {"A": mine, "B": theirs}, {"A": 1.5, "B": 2.0})
    assert table["reached"].tolist() == [2, 1]
    assert table["mean"].tolist() == [15.0, 10.0]


def test_a_seed_that_stopped_never_gets_there_and_shortens_no_pair():
    """B's second seed stopped at 10 updates; all others were followed for 30."""
    metric = {"column": "test_error", "at": "time", "below": 0.5, "better": "lower"}
    mine = rows("test_error", [1.0, 0.9, 0.4], [1.0, 0.9, 0.9], updates=[0, 10, 30])
    theirs = rows("test_error", [1.0, 0.4, 0.4], [1.0, 0.9, 0.9], updates=[0, 10, 30])
    stopped = theirs["seed"] == 1
    theirs.loc[stopped, "updates"] = theirs.loc[stopped, "updates"].clip(upper=10)
    theirs["stopped_at"] = [4 if stop else -1 for stop in stopped]
    table = arm_table(study(metric=metric), {"A": mine, "B": theirs}, {"A": 1.0, "B": 1.0})
    assert table["mean"].tolist() == [30.0, 20.0] and table["horizon"].tolist() == [30.0, 30.0]
    (row,) = pair_table(study(metric=metric), {"A": mine, "B": theirs}).to_dict("records")
    assert row["difference"] == 10.0
    alone = theirs[stopped]
    table = arm_table(study(metric=metric, arms={"B": {}}, pairs=[]), {"B": alone}, {"B": 1.0})
    assert table[["mean", "horizon", "reached"]].to_numpy().tolist() == [[10.0, 10.0, 0]]


TIMED = {"column": "test_error", "at": "time", "below": 0.5, "better": "lower", "margin": 20}


def test_arms_that_never_get_there_are_not_equivalent():
    """Both are censored at the same time, so all differences are 0, and nothing is known."""
    never = rows("test_error", *[[1.0, 0.9]] * 3, updates=[0, 10])
    longer = rows("test_error", *[[1.0, 0.9, 0.9]] * 3, updates=[0, 10, 1000])
    declared = study(metric=TIMED, pairs=[["A", "B", "equivalent"]])
    (row,) = pair_table(declared, {"A": never, "B": longer}).to_dict("records")
    assert (row["difference"], row["unreached"]) == (0, 1)
    assert (row["p_equivalent"], row["verdict"], row["claim"]) == (1, "not reached", "open")
    soon = rows("test_error", *[[1.0, 0.4]] * 3, updates=[0, 10])
    (row,) = pair_table(study(metric=TIMED, pairs=[["A", 10.0]]), {"A": never}).to_dict("records")
    assert row["verdict"] == "not reached"
    (row,) = pair_table(declared, {"A": soon, "B": soon}).to_dict("records")
    assert (row["unreached"], row["verdict"], row["claim"]) == (0, "equivalent", "holds")


def test_a_number_beyond_the_horizon_is_compared_at_the_horizon():
    """One seed gets there after 140 updates; nine are followed for 150, so of 200 nothing is known.

    The differences are -10 and nine times 0: mean -1 and standard error 1, so t is -1.
    """
    seeds = [[1, 0.4, 0.4], *[[1, 0.9, 0.9]] * 9]
    log = rows("test_error", *seeds, updates=[0, 140, 150])
    declared = study(metric=TIMED, pairs=[["A", 200.0]])
    (row,) = pair_table(declared, {"A": log}).to_dict("records")
    assert row["difference"] == pytest.approx(-1)
    assert row["p"] == pytest.approx(2 * stats.t.sf(1, 9))
    assert (row["unreached"], row["verdict"]) == (0.9, "inconclusive")


def test_a_time_is_described_up_to_its_horizon():
    """Two seeds get there after 10 updates, and one is followed for 20 only."""
    log = rows("test_error", [1, 0.4, 0.4], [1, 0.4, 0.4], [1, 1, 1], updates=[0, 10, 20])
    (row,) = arm_table(study(metric=TIMED, pairs=[]), {"A": log}, {"A": 1.0}).to_dict("records")
    assert (row["reached"], row["horizon"], row["upper"]) == (2, 20, 20)


def test_a_sure_difference_within_the_margin_is_as_good_as_none():
    arms = {"A": last(0.101, 0.201, 0.301), "B": last(0.1, 0.2, 0.3)}
    arms["A"]["test_error"] += [0, 0, 0, 1e-5, 0, -1e-5]
    metric = {"column": "test_error", "better": "lower", "margin": 0.05}
    (row,) = pair_table(study(metric=metric), arms).to_dict("records")
    assert row["p_holm"] < 0.001 and row["verdict"] == "equivalent"


def test_costs_are_means_over_seeds_and_a_column_that_nobody_logs_is_refused():
    log = last(0.1, 0.2, 0.3).assign(rollouts=[0, 0, 0, 10, 20, 60])
    declared = study(pairs=[])
    assert arm_table(declared, {"A": log}, {"A": 1.0})["rollouts"].tolist() == [30]
    with pytest.raises(UserError, match=r"^also: no arm has a column 'test_eror'; did you"):
        arm_table(study(pairs=[], also=[{"column": "test_eror"}]), {"A": log}, {"A": 1.0})
    with pytest.raises(UserError, match=r"^metric: arm 'A' has no column 'test_eror'"):
        arm_table(study(pairs=[], metric={"column": "test_eror"}), {"A": log}, {"A": 1.0})
    log.loc[log["seed"] == 1, "test_error"] = NAN
    with pytest.raises(UserError, match=r"^metric: test_error: seed 1 of arm 'A' logs no value"):
        arm_table(declared, {"A": log}, {"A": 1.0})


@pytest.mark.parametrize(("ends", "far"), [((0.293, 0.293), np.inf), ((0.2, 0.20004), 0.0)])
def test_a_mean_is_far_from_a_published_one_without_spread_if_it_prints_differently(ends, far):
    declared = study(published={"A": {"test_error": [0.2, 0.0]}}, pairs=[])
    assert arm_table(declared, {"A": last(*ends)}, {"A": 1.0})["far"].tolist() == [far]


def test_published_values_belong_to_their_metric():
    of_a = {"test_error": [0.5, 0.1], "test error at updates 0": [0.9, None]}
    declared = study(
        published={"A": of_a, "B": {"test_error": [0.4, None]}},
        also=[{"column": "test_error", "at": "mean"}, {"column": "test_error", "until": 0}],
    )
    arms = {"A": last(0.1, 0.2, 0.3), "B": last(0.3, 0.5, 0.7)}
    table = arm_table(declared, arms, {"A": 1.5, "B": 2.0})
    nothing = [NAN] * 4
    assert table["published"].tolist() == pytest.approx([0.5, 0.4, NAN, NAN, 0.9, NAN], nan_ok=True)
    assert table["far"].tolist() == pytest.approx([-3, NAN, *nothing], nan_ok=True)
    # Ours: 0.2 and deviation 0.1; theirs 0.5 and 0.1; three seeds each, so the standard error is
    # 0.1 sqrt(2/3), with 4 degrees of freedom.
    p = 2 * stats.t.sf(0.3 / (0.1 * (2 / 3) ** 0.5), 4)
    assert table["p_published"].tolist() == pytest.approx([p, NAN, *nothing], nan_ok=True)
    assert pair_table(declared, arms)["published"].item() == pytest.approx(0.1)
    assert np.isnan(pair_table(study(), arms)["published"].item())


def test_of_one_seed_nothing_is_said():
    (row,) = pair_table(study(), {"A": last(0.1), "B": last(0.3)}).to_dict("records")
    assert (row["verdict"], row["p"]) == ("one seed", 1.0)
