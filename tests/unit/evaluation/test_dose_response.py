"""Dose and response, by hand: which arms have a place on the axis, and what stands there."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from hgrpo.credit.kinds import CreditConfig
from hgrpo.evaluation import thresholds
from hgrpo.evaluation.designs import doses
from hgrpo.evaluation.dose_response import responses
from hgrpo.evaluation.played_endpoints import Protocol


@pytest.mark.parametrize(
    ("credit", "expected"),
    [
        ({"kind": "oracle"}, 1.0),
        ({"kind": "oracle", "correlation": 0.75}, 0.75),
        ({"kind": "oracle", "shuffled": True}, 0.0),
        ({"kind": "oracle", "shuffled": True, "correlation": 0.5}, 0.0),
        ({"kind": "oracle", "flipped": True}, None),
        # It correlates with its own estimate of the truth only.
        ({"kind": "vine", "correlation": 0.5, "shuffled": False}, None),
        ({"kind": "flat"}, None),
    ],
)
def test_the_correlation_that_settings_declare(credit, expected):
    assert CreditConfig(**credit).declared.correlation_with_oracle == expected


def arm(credit, train=True):
    return {"credit": credit, "train": train}


def test_doses_ascend_and_are_none_without_two_different_ones():
    methods = {
        "sft": arm({"kind": "flat"}, train=False),
        "truth": arm({"kind": "oracle"}),
        "half": arm({"kind": "oracle", "correlation": 0.5}),
        "flat": arm({"kind": "flat"}),
    }
    assert list(doses(methods).items()) == [("half", 0.5), ("truth", 1.0)]
    assert doses(methods | {"half": arm({"kind": "oracle"})}) == {}
    assert doses({}) == {}


# Success by round of two seeds, 100 trajectories and 4 steps a round.
RUNS = {
    "flat": {1: [0.2, 0.4], 2: [0.3, 0.2]},
    "half": {1: [0.2, 0.6], 2: [0.1, 0.3]},
    "truth": {1: [0.6, 0.6], 2: [0.2, 0.7]},
}


def comparison(steps=True):
    runs = pd.DataFrame(
        [
            {"method": method, "seed": seed, "round": number, "success": value}
            for method, seeds in RUNS.items()
            for seed, values in seeds.items()
            for number, value in enumerate(values, start=1)
        ]
    )
    play = runs[["method", "seed", "round"]].assign(trajectories=100 * runs["round"], replies=0)
    first = thresholds.first_rounds(runs, [0.5], "success", play)
    areas = runs.groupby(["method", "seed"])["success"].mean().rename("endpoint").reset_index()
    means = areas.groupby("method")["endpoint"].mean().reset_index()
    return SimpleNamespace(
        protocol=Protocol(
            reference="flat", step_trajectories=dict.fromkeys(RUNS, 25) if steps else {}
        ),
        methods=means.assign(temperature=0.0, endpoint_lower=0.1, endpoint_upper=0.9, n_seeds=2),
        seeds=areas.assign(temperature=0.0),
        first_rounds=first,
        thresholds=thresholds.summary(first, "flat", 0.95),
    )


KNOWN = {"half": 0.5, "truth": 1.0}


def test_responses_by_hand():
    table = responses(comparison(), KNOWN)
    assert table["method"].drop_duplicates().tolist() == ["half", "truth", "flat"]
    means = table[table["seed"].isna()].set_index(["measure", "method"])
    level = means.loc["endpoint", "value"]
    assert level.to_dict() == pytest.approx({"half": 0.3, "truth": 0.525, "flat": 0.275})
    times = means.loc["trajectories"]
    # half: 200 and never by 200; truth: 100 and 200; flat: never, never.
    assert times["value"].to_dict() == pytest.approx({"half": 200, "truth": 150, "flat": 200})
    assert times["steps"].to_dict() == pytest.approx({"half": 8, "truth": 6, "flat": 8})
    assert times["reached"].to_dict() == {"half": 1, "truth": 2, "flat": 0}
    # With two seeds the interval is wider than the horizon.
    assert times.loc["truth", ["steps_lower", "upper"]].tolist() == [0, 200]
    assert times["correlation"].tolist()[:2] == [0.5, 1.0] and np.isnan(
        times["correlation"].iloc[2]
    )


def test_runs_that_never_get_there_are_marked_and_stand_at_the_end():
    table = responses(comparison(), KNOWN)
    runs = table[(table["measure"] == "trajectories") & table["seed"].notna()]
    by_run = runs.set_index(["method", "seed"])[["value", "reached"]].astype(int).T.to_dict("list")
    assert by_run == {
        ("half", 1): [200, 1],
        ("half", 2): [200, 0],
        ("truth", 1): [100, 1],
        ("truth", 2): [200, 1],
        ("flat", 1): [200, 0],
        ("flat", 2): [200, 0],
    }


def test_a_run_that_gets_there_beyond_the_common_end_counts_as_the_end():
    compared = comparison()
    first = compared.first_rounds
    first.loc[first["method"] == "flat", "end"] = 150
    runs = responses(compared, KNOWN)
    runs = runs[(runs["measure"] == "trajectories") & (runs["method"] == "truth")]
    singles = runs[runs["seed"].notna()]
    assert singles[["value", "reached"]].to_numpy().tolist() == [[100, 1], [150, 0]]
