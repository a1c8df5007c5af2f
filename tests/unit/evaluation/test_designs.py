"""When the arms of a study are a sweep or a factorial, and what a factorial's contrasts are."""

import copy

import numpy as np
import pytest
from report_fixtures import shipped
from scipy import stats

from hgrpo.evaluation.designs import Factorial, alpha_sweep, factorial
from hgrpo.evaluation.differences import effects

REFERENCE = "flat_K8_hi_guard"


@pytest.fixture
def sweep():
    return copy.deepcopy(shipped("alpha_sweep"))


@pytest.fixture
def tier2():
    return copy.deepcopy(shipped("tier2_factorial"))


def test_the_shipped_studies_have_the_designs_they_are_named_after():
    designs = {
        name: (bool(alpha_sweep(arms)), any(factorial(arms, arm) for arm in arms))
        for name in ("alpha_sweep", "tier2_factorial", "bakeoff_plateau_plus", "calibration_hard")
        if (arms := shipped(name))
    }
    assert {name for name, (sweep, _) in designs.items() if sweep} == {"alpha_sweep"}
    assert {name for name, (_, cells) in designs.items() if cells} == {"tier2_factorial"}


def test_a_sweep_is_in_the_order_of_alpha_with_flat_grpo_as_its_end(sweep):
    assert list(alpha_sweep(sweep).items()) == [
        ("TurnRDV2_a000", 0.0),
        ("TurnRDV2_a025", 0.25),
        ("TurnRDV2", 0.5),
        ("TurnRDV2_a075", 0.75),
        ("flatGRPO", 1.0),
    ]


@pytest.mark.parametrize(
    ("arm", "key", "value"),
    [
        ("TurnRDV2", "turn_norm", "group"),
        ("TurnRDV2", "training", {"lr": 1e-4, "rollouts_per_task": 8}),
        ("TurnRDV2", "credit", {"kind": "progress"}),
        ("TurnRDV2", "alpha", 0.25),
        ("flatGRPO", "stream", 1),
        ("flatGRPO", "dead_groups", "keep"),
    ],
)
def test_a_second_difference_or_a_value_twice_is_no_sweep(sweep, arm, key, value):
    assert alpha_sweep(sweep)
    sweep[arm][key] = value
    assert alpha_sweep(sweep) == {}


def test_what_makes_the_turns_advantage_does_not_count_at_alpha_one(sweep):
    sweep["flatGRPO"]["turn_norm"] = "group"
    assert len(alpha_sweep(sweep)) == 5


def test_words_do_not_count_and_two_values_are_no_sweep(sweep):
    sweep["TurnRDV2"]["label"] = "something else"
    assert len(alpha_sweep(sweep)) == 5
    del sweep["TurnRDV2_a000"], sweep["TurnRDV2_a075"]
    assert len(alpha_sweep(sweep)) == 3
    del sweep["TurnRDV2_a025"]
    assert alpha_sweep(sweep) == {}


def test_sixteen_cells_with_the_reference_first(tier2):
    design = factorial(tier2, REFERENCE)
    assert design.factors == {
        "credit": ("flat", "turnrd"),
        "rollouts_per_task": (8, 4),
        "lr": (3e-4, 1e-4),
        "dead_groups": ("skip_equal_returns", "keep"),
    }
    assert len(design.cells) == 16 and "SFTOnly" not in design.cells
    assert [len(contrast) for contrast in design.contrasts] == [1] * 4 + [2] * 3
    assert factorial(tier2, "turnrd_K4_lo_keep").factors["lr"] == (1e-4, 3e-4)


def _drop(arms):
    del arms["flat_K4_lo_keep"]


def _third_level(arms):
    for name in ("flat_K4_lo_keep", "turnrd_K4_lo_keep"):
        arms[name]["training"]["lr"] = 1e-5


def _one_cell_twice(arms):
    arms["flat_K4_lo_keep"]["training"]["lr"] = 3e-4


def _another_difference(arms):
    arms["flat_K4_lo_keep"]["group_norm"] = "mean"


def _another_training_key(arms):
    arms["flat_K4_lo_keep"]["training"]["clip_high"] = 0.3


@pytest.mark.parametrize(
    "spoil", [_drop, _third_level, _one_cell_twice, _another_difference, _another_training_key]
)
def test_a_factorial_is_full_and_free_of_other_differences(tier2, spoil):
    assert factorial(tier2, REFERENCE)
    spoil(tier2)
    assert factorial(tier2, REFERENCE) is None


def test_settings_that_follow_one_factor_belong_to_it(tier2):
    """Alpha goes with the assigner, tasks per step with the group size."""
    assert {arm["alpha"] for arm in tier2.values()} == {0.5, 1.0}
    assert {arm["training"]["tasks_per_step"] for arm in tier2.values()} == {32, 64}
    assert factorial(tier2, REFERENCE)


@pytest.fixture
def square():
    """Two factors; the arms are named by their levels."""
    levels = {"credit": ("flat", "turnrd"), "lr": (0.3, 0.1)}
    arms = {
        f"{kind} {lr}": {"credit": kind, "lr": lr} for kind in levels["credit"] for lr in (0.3, 0.1)
    }
    return Factorial(levels, arms)


def effects_of(square, success, level=0.95):
    """Effects by name, from arm -> outcomes [seeds, tasks]."""
    scores = {arm: np.asarray(table, dtype=float) for arm, table in success.items()}
    return effects(scores, square, "success", level).set_index("effect")


def test_effects_by_hand(square):
    # Successes of ten: flat 2 and 4, turnrd 5 and 9 (at 0.3 and at 0.1).
    wins = {"flat 0.3": 2, "flat 0.1": 4, "turnrd 0.3": 5, "turnrd 0.1": 9}
    success = {arm: np.tile(np.arange(10) < won, (2, 1)) for arm, won in wins.items()}
    table = effects_of(square, success)
    assert table.loc["credit", "difference"] == pytest.approx((5 + 9 - 2 - 4) / 20)
    assert table.loc["lr", "difference"] == pytest.approx((4 + 9 - 2 - 5) / 20)
    # The assigner's effect grows from 3 of ten to 5 of ten: half of that is the interaction.
    assert table.loc["credit x lr", "difference"] == pytest.approx((5 - 3) / 20)
    assert table["kind"].tolist() == ["main", "main", "interaction"]


def test_effects_have_the_spread_of_all_cells(square):
    # Three seeds, one task of success, and cells whose runs differ from cell and seed by +-d.
    runs = np.array([[3, 5, 4], [4, 4, 4], [6, 5, 7], [5, 8, 5]]) / 10
    success = {
        arm: np.arange(10) < 10 * rates[:, None]
        for arm, rates in zip(square.cells, runs, strict=True)
    }
    table = effects_of(square, success, 0.9)
    left = runs - runs.mean(axis=1)[:, None] - runs.mean(axis=0) + runs.mean()
    pooled = (left**2).sum() / 6
    of_arm = ((left**2).sum(axis=1) / 2 - pooled / 4) * 2
    of_runs = np.maximum(of_arm, pooled).sum() / 4 / 3
    halves = [
        (success[f"{kind} 0.3"] + 1.0 * success[f"{kind} 0.1"]) / 2 for kind in ("turnrd", "flat")
    ]
    by_task = np.r_[(halves[0] - halves[1]).mean(axis=0), 1, -1]
    error = np.sqrt(of_runs + by_task.var(ddof=1) / 12)
    half = stats.t.ppf(0.95, 6) * error
    row = table.loc["credit"]
    assert row["standard_error"] == pytest.approx(error)
    assert row["upper"] - row["difference"] == pytest.approx(half)
    assert (row["n_seeds"], row["n_tasks"]) == (3, 10)


def test_a_clear_effect_gets_its_verdict_and_others_do_not(square):
    success = {
        arm: np.tile(np.arange(60) % 2 == 0, (5, 1)) | (cell["credit"] == "turnrd")
        for arm, cell in square.cells.items()
    }
    table = effects_of(square, success)
    assert table["verdict"].to_dict() == {
        "credit": "better",
        "lr": "inconclusive",
        "credit x lr": "inconclusive",
    }
