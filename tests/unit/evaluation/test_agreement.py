"""Agreement of assigners: correlations, checks, what is computed once, and the pictures of it."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from tiny_policy import TEXTS, hall_tasks

from hgrpo.credit.base import Context, CreditAssigner
from hgrpo.credit.kinds import CreditConfig
from hgrpo.errors import UserError
from hgrpo.evaluation import shared_rollouts
from hgrpo.evaluation.credit_correlation import check_row, correlations
from hgrpo.evaluation.shared_rollouts import (
    SharedRollouts,
    computations,
    compute,
    groups_for,
)
from hgrpo.report.figures.credit import strips
from hgrpo.report.figures.credit_correlation import gallery, gallery_table, heat_map, pick
from hgrpo.report.style import save
from hgrpo.trajectories.played_groups import PlayedGroup
from hgrpo.trajectories.trajectory import Trajectory, Turn

LENGTHS = np.array([4, 0, 1, 3, 5])


def test_correlations_are_scipys():
    rng = np.random.default_rng(1)
    a = rng.integers(0, 4, LENGTHS.sum()).astype(float)
    b = rng.normal(size=LENGTHS.sum())
    row = correlations({"a": a, "b": b}, LENGTHS).iloc[0]
    assert row["pooled"] == pytest.approx(spearmanr(a, b).statistic)
    parts = [slice(0, 4), slice(5, 8), slice(8, 13)]
    inside = [spearmanr(a[part], b[part]).statistic for part in parts if np.ptp(a[part])]
    assert row["within"] == pytest.approx(np.mean(inside))
    assert (row["turns"], row["trajectories"]) == (13, len(inside))


def test_turns_that_a_method_was_not_asked_about_are_left_out():
    a = np.arange(13.0)
    b = np.where(np.arange(13) < 8, a, np.nan)
    row = correlations({"a": a, "b": b}, LENGTHS).iloc[0]
    assert (row["turns"], row["trajectories"]) == (8, 2)
    assert [row["pooled"], row["within"]] == pytest.approx([1, 1])


@pytest.mark.parametrize("constant", [np.zeros(13), np.full(13, np.nan)])
def test_credit_that_does_not_vary_correlates_with_nothing(constant):
    row = correlations({"a": np.arange(13.0), "flat": constant}, LENGTHS).iloc[0]
    assert np.isnan(row["pooled"]) and np.isnan(row["within"])
    assert row["trajectories"] == 0


def test_rounding_is_a_tie_and_not_an_order():
    a = np.arange(4.0)
    noisy = 1 / 3 + np.array([3, 2, 1, 0]) * 1e-16
    row = correlations({"a": a, "noisy": noisy}, np.array([4])).iloc[0]
    assert np.isnan(row["within"]) and np.isnan(row["pooled"])
    small = 1e-12 * np.array([3.0, 2, 1, 0])
    assert correlations({"a": a, "b": small}, np.array([4])).iloc[0]["within"] == pytest.approx(-1)


def test_a_check_by_hand():
    credit = np.array([0.5, 0.25, 0, 0, 2, np.nan, np.nan, np.nan, 0, 0, 0, 0, -1])
    row = check_row(credit, np.array([1.0, 0, 2, 7, -1]), LENGTHS)
    assert row == {
        "trajectories": 3,
        "turns": 10,
        "nonzero_share": 0.4,
        "mean_abs_credit": pytest.approx(3.75 / 10),
        "largest_sum_error": 0.25,
    }
    assert np.isnan(check_row(credit, None, LENGTHS)["largest_sum_error"])
    assert check_row(np.full(13, np.nan), np.zeros(5), LENGTHS)["trajectories"] == 0


TURNRD = {"kind": "turnrd", "model": {"hidden": 16, "heads": 2}}
TAUGHT = TURNRD | {"fit": {"supervision_weight": 1.0}, "counterfactual": {}}


def plan(fitted=(), **methods):
    """First method -> computation."""
    credit = {name: CreditConfig(**settings) for name, settings in methods.items()}
    plans = computations(credit, {name: f"fits/{name}" for name in fitted})
    return {computed.methods[0]: computed for computed in plans}


def test_methods_with_the_same_credit_are_computed_once():
    plans = plan(
        flat={"kind": "flat"},
        judged={"kind": "progress"},
        again={"kind": "flat"},
        gigpo={"kind": "state_graph", "terms": [{"value": "mc_mean", "credit": "G-V"}]},
        rloo={"kind": "state_graph", "trajectory": {"mode": "loo"}},
    )
    assert {name: c.methods for name, c in plans.items()} == {
        "flat": ["flat", "again"],
        "judged": ["judged"],
        "gigpo": ["gigpo"],
        "rloo": ["rloo"],
    }


def test_the_same_settings_with_another_model_are_another_credit():
    plans = plan(fitted=["one", "two"], one=TURNRD, two=TURNRD, none=TURNRD, also=TURNRD)
    assert [c.methods for c in plans.values()] == [["one"], ["two"], ["none", "also"]]
    assert plans["one"].note == "" and "equal shares of the return" in plans["none"].note
    assert plans["one"].declared.needs_policy
    assert not plan(m={"kind": "flat"})["m"].declared.needs_policy


def test_targets_of_the_next_fit_are_not_played():
    computed = plan(fitted=["taught"], taught=TAUGHT)["taught"]
    assert computed.credit.settings["counterfactual"] is None
    assert computed.credit.settings["model"] == CreditConfig(**TAUGHT).settings["model"]
    assert "no continuations are played" in computed.note


@pytest.mark.parametrize(
    ("credit", "fitted", "expected"),
    [
        ({"kind": "flat"}, False, ""),
        ({"kind": "progress"}, False, "progress"),
        ({"kind": "random"}, False, "progress"),
        (TURNRD | {"readout": "value_baseline"}, True, ""),
        (TURNRD | {"readout": "value_baseline"}, False, "return"),
        (TURNRD | {"readout": "projected_value"}, True, "return"),
        (TURNRD, True, "return"),
    ],
)
def test_what_credit_sums_to(credit, fitted, expected):
    assert plan(fitted=["m"] if fitted else [], m=credit)["m"].sums_to == expected


def trajectory(task, rollout, rewards, actions=None):
    """A trajectory with these rewards, which are its progress too."""
    turns = [
        Turn(TEXTS[0], action, (i, i + 1), reward, reward, True, False)
        for i, (reward, action) in enumerate(
            zip(rewards, actions or ["open door 1"] * len(rewards), strict=True)
        )
    ]
    return Trajectory(task, rollout, "find a coin.", turns=turns)


@pytest.fixture
def rollouts():
    """Two groups of two; the second has a won and a lost trajectory."""
    one, two = hall_tasks(2)
    cached = [
        PlayedGroup(1, 0, [trajectory(one, 0, [0, 0]), trajectory(one, 1, [0, 0, 0])]),
        PlayedGroup(1, 1, [trajectory(two, 0, [0]), trajectory(two, 1, [0, 0, 1.0])]),
    ]
    return SharedRollouts(cached, 11, 0)


class Wrong(CreditAssigner):
    """An assigner with as many credits as it is told."""

    def __init__(self, values):
        self._values = values

    def assign(self, group):
        return [
            np.full(len(t.turns) + self._values[0], self._values[1]) for t in group.trajectories
        ]


@pytest.mark.parametrize("values", [(0, np.nan), (0, np.inf), (1, 0.0)])
def test_a_credit_that_is_no_number_or_one_too_many_is_an_error(rollouts, monkeypatch, values):
    monkeypatch.setattr(shared_rollouts, "make_assigner", lambda *_: Wrong(values))
    with pytest.raises(UserError, match=r"test_agreement\.Wrong: task \S+ rollout 0: "):
        compute(plan(m={"kind": "flat"})["m"], rollouts.named, rollouts, Context())


class Marks(CreditAssigner):
    """Notes something in every turn, as assigners do that fill in targets."""

    def assign(self, group):
        for trajectory in group.trajectories:
            for turn in trajectory.turns:
                turn.target = 7.0
        return [np.zeros(len(t.turns)) for t in group.trajectories]


def test_what_an_assigner_notes_in_turns_does_not_reach_the_others(rollouts, monkeypatch):
    before = [turn.target for t in rollouts.trajectories for turn in t.turns]
    monkeypatch.setattr(shared_rollouts, "make_assigner", lambda *_: Marks())
    compute(plan(m={"kind": "flat"})["m"], rollouts.named, rollouts, Context())
    assert [turn.target for t in rollouts.trajectories for turn in t.turns] == before


def test_a_method_that_plays_is_asked_about_the_first_groups(rollouts):
    computed = plan(cf={"kind": "counterfactual"})["cf"]
    assert computed.credit.settings["turns_per_trajectory"] is None
    assert groups_for(computed, rollouts, 1) == rollouts.named[:1]
    assert groups_for(plan(m={"kind": "flat"})["m"], rollouts, 1) == rollouts.named
    compute(computed, groups_for(computed, rollouts, 0), rollouts, Context())
    assert computed.values is None and "counterfactual_groups is 0" in computed.note


def test_only_a_judge_may_be_out_of_reach(rollouts, monkeypatch):
    def refuse(*_):
        raise UserError("no key")

    monkeypatch.setattr(shared_rollouts, "make_assigner", refuse)
    prices = {"dollars_per_million_input": 0, "dollars_per_million_output": 0}
    judge = plan(m={"kind": "judge", "model": "m"} | prices)["m"]
    compute(judge, rollouts.named, rollouts, Context())
    assert judge.values is None and judge.note == "omitted: no key"
    with pytest.raises(UserError, match="no key"):
        compute(plan(m={"kind": "flat"})["m"], rollouts.named, rollouts, Context())


@pytest.mark.parametrize(
    ("lengths", "returns", "complete", "expected"),
    [
        # The first group with two returns, the first best and the first worst in it; the longest.
        (
            [2, 3, 4, 4, 5, 9],
            [0, 0, 0, 1, 1, 0],
            [1] * 6,
            [("best", 3), ("worst", 2), ("longest", 5)],
        ),
        # The longest is also the best, so there are two pictures.
        ([2, 3, 4, 9, 5, 9], [0, 0, 0, 1, 1, 0], [1] * 6, [("best", 3), ("worst", 2)]),
        # Trajectories that every method credited come first.
        ([2, 3, 4, 9, 5, 6], [0, 0, 0, 1, 1, 0], [0] * 4 + [1] * 2, [("best", 4), ("worst", 5)]),
        # Among those there is no pair: the pair is sought among all.
        (
            [2, 3, 4, 5, 5, 6],
            [0, 0, 0, 1, 0, 0],
            [1, 1, 0, 0, 0, 0],
            [("best", 3), ("worst", 2), ("longest", 1)],
        ),
        # Trajectories that are too long to be drawn or have no turn are left out.
        ([2, 3, 99, 4, 17, 0], [0, 0, 1, 0, 1, 0], [1] * 6, [("longest", 4)]),
        ([0, 0, 0, 0, 0, 0], [0] * 6, [1] * 6, []),
    ],
)
def test_trajectories_of_the_gallery(lengths, returns, complete, expected):
    groups = [0, 0, 1, 1, 2, 2]
    assert pick(lengths, returns, groups, [bool(c) for c in complete]) == expected


def test_the_gallery_is_scaled_by_method(rollouts, tmp_path):
    credits = {"a": np.arange(9.0), "b": np.where(np.arange(9) < 5, np.nan, -0.5)}
    table = gallery_table(
        [("best", 3), ("longest", 1)], rollouts.trajectories, rollouts.steps, credits
    )
    best = table[(table["picture"] == "best") & (table["method"] == "a")]
    assert best["credit"].tolist() == [6, 7, 8]
    assert best["shade"].tolist() == [0.75, 0.875, 1]
    assert best["env_return"].unique().tolist() == [1.0]
    assert best["goal"].unique().tolist() == ["find a coin."]
    assert best["step"].unique().tolist() == [1]
    longest = table[table["picture"] == "longest"].set_index(["method", "turn"])["shade"]
    assert longest["a"].tolist() == [0.25, 0.375, 0.5]
    assert longest["b"].isna().all()
    drawing = gallery(table, {"a": "A", "b": "B"})
    save(drawing, tmp_path)
    svg = (tmp_path / "gallery.svg").read_text(encoding="utf-8")
    assert "best, 1 paid: find a coin." in svg and "longest, 0 paid" in svg
    assert ">+8.00</text>" in svg and ">-0.50</text>" in svg


def test_actions_with_control_characters_still_make_a_picture(tmp_path):
    from xml.etree import ElementTree

    strange = trajectory(hall_tasks(1)[0], 0, [0.0, 1.0], ["open\x06door\x18", ""])
    table = gallery_table([("longest", 0)], [strange], [0], {"a": np.ones(2)})
    save(gallery(table, {"a": "A"}), tmp_path)
    text = "".join(ElementTree.parse(tmp_path / "gallery.svg").getroot().itertext())
    assert "open\ufffddoor\ufffd" in text and "(empty)" in text


@pytest.mark.parametrize("methods", [4, 6, 16])
def test_strips_have_numbers_while_there_is_room(methods):
    names = [f"method {i}" for i in range(methods)]
    picture = pd.DataFrame(
        {"turn": 0, "action": "look", "method": names, "credit": 0.25, "shade": 0.5}
    )
    figure = strips([picture], ["title"], {name: name for name in names})
    written = [text.get_text() for text in figure.axes[0].texts]
    assert written == (["+0.25"] * methods if methods <= 6 else [])
    assert len(figure.axes[0].get_xticklabels()) == methods


def matrix_of(drawing):
    return [text.get_text() for text in drawing.figure.axes[0].texts]


def test_the_heat_map_has_pooled_above_and_within_below(tmp_path):
    rows = [("a", "b", 0.5, -0.25), ("a", "c", np.nan, 1.0), ("b", "c", 0.004, np.nan)]
    table = pd.DataFrame(
        [dict(zip(("method_a", "method_b", "pooled", "within"), row, strict=True)) for row in rows]
    )
    drawing = heat_map(table, {"a": "A", "b": "B", "c": "C"}, ["D is left out."])
    assert matrix_of(drawing) == ["1", "50", "", "-25", "2", "0", "100", "", "3"]
    assert drawing.caption.endswith("D is left out.")
    assert "Most similar within a trajectory: A and C, 1.00." in drawing.alt
    # In another order of the methods the picture turns, and the numbers stay with their pairs.
    turned = heat_map(table, {"c": "C", "b": "B", "a": "A"}, [])
    assert matrix_of(turned) == ["1", "0", "", "", "2", "50", "100", "-25", "3"]
    assert len(heat_map(table, {"a": "A", "b": "B"}, []).data) == 1
    save(drawing, tmp_path)
    assert (
        (tmp_path / "agreement.csv")
        .read_text(encoding="utf-8")
        .startswith("method_a,method_b,pooled")
    )


def test_a_heat_map_of_nothing_says_so():
    table = correlations({"flat": np.zeros(13)}, LENGTHS)
    assert matrix_of(heat_map(table, {}, [])) == ["Fewer than two methods\nwhose credit varies"]
