"""Totals of a round, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from hgrpo.config.read import read_yaml
from hgrpo.learning.advantages import advantage_shares
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.round import RoundId
from hgrpo.learning.round_outputs import credit_caution, totals

SIZES = {"mean_abs_traj_adv": 0.8, "mean_abs_turn_adv": 0.8}


def row(reward, norm, **counts):
    numbers = dict.fromkeys(
        (
            *("n_groups", "n_trajectories", "n_turns", "n_action_tokens", "n_forward_tokens"),
            *("inadmissible", "overlong", "empty", "dead_groups", "truncated"),
            *("context_overflow", "n_trained_groups", "n_trained_trajectories"),
        ),
        0,
    )
    return numbers | {"mean_reward": reward, "grad_norm": norm} | counts


def test_totals_by_hand():
    rows = [
        row(step / 20, 0.5, n_groups=2, n_trained_groups=1, n_turns=10, truncated=1)
        for step in range(20)
    ]
    rows[3]["grad_norm"] = None
    rows[4]["grad_norm"] = 2.4
    sums = totals(rows)
    assert sums["n_steps"] == 20
    assert (sums["total_groups"], sums["total_turns"]) == (40, 200)
    assert (sums["total_trained_groups"], sums["total_trained_trajectories"]) == (20, 0)
    # Two steps are a tenth: (0 + 1/20) / 2 and (18/20 + 19/20) / 2.
    assert sums["mean_reward_first_10pct"] == 0.025
    assert sums["mean_reward_last_10pct"] == 0.925
    # (18 * 0.5 + 2.4) / 19, without the step that was not taken.
    assert sums["mean_grad_norm"] == 0.6
    assert sums["counts"]["truncated"] == 20 and sum(sums["counts"].values()) == 20
    assert totals([row(1.0, None)])["mean_grad_norm"] is None


def test_all_play_has_continuations_and_the_groups_of_dynamic_sampling():
    # The second step played two groups of 4 in place of one, and continuations: 12 before turns.
    rows = [
        row(0.0, None, n_groups=1, n_trajectories=4, n_turns=20, n_forward_tokens=300),
        row(0.0, None, n_groups=2, n_trajectories=8, n_turns=35, n_forward_tokens=500)
        | {"cf_branches": 12, "cf_replies": 30, "cf_replayed_turns": 25, "cf_tokens": 900},
    ]
    sums = totals(rows)
    assert sums["all_play"] == {"trajectories": 24, "replies": 85, "tokens": 1700}
    assert (sums["total_trajectories"], sums["total_turns"]) == (12, 55)


@pytest.mark.parametrize(
    ("method", "index", "flat", "message"),
    [
        ("Progressive", 1, (2, 2), "(0, too small, or constant after turn_norm: position)"),
        ("Progressive", 1, (2, 1), ""),
        ("Progressive", 1, (), ""),
        # Before its first fit, TurnRD shares the return equally, as it should.
        ("TurnRDV2", 1, (2, 2), ""),
        ("TurnRDV2", 2, (2, 2), "the same for all turns of a trajectory"),
        ("flatGRPO", 2, (2, 2), ""),
    ],
)
def test_a_round_says_if_credit_told_no_turns_apart_in_any_group(
    project, method, index, flat, message
):
    config = MethodConfig(**read_yaml(project / f"configs/methods/{method}.yaml"))
    row = {"n_groups": 2, "turn_share": 0.2} | SIZES
    rows = [row | {"flat_credit_groups": number} for number in flat]
    caution = credit_caution(SimpleNamespace(id=RoundId(config, 11, index), rows=rows))
    assert message in caution and bool(message) == bool(caution)


@pytest.mark.parametrize(
    ("alpha", "turn_norm", "sizes", "caution"),
    [
        (0.5, "none", {"turn_share": 0.0099}, "under 1 % of the sum of squares of its"),
        (0.5, "none", {"turn_share": 0.011}, ""),
        (0.5, "none", {"turn_share": None}, ""),
        (0.5, "none", {"mean_abs_turn_adv": 90.0}, "its turn credit is over 100 times as large"),
        (0.5, "none", {"mean_abs_turn_adv": 79.0}, ""),
        # 0.9 * 0.8 = 0.72, and 0.1 * 500 = 50
        (0.9, "none", {"mean_abs_turn_adv": 500.0}, ""),
        # The assigner's credit is the whole advantage.
        (0.0, "none", {"mean_abs_turn_adv": 90.0}, ""),
        # All returns are equal.
        (0.5, "none", {"mean_abs_turn_adv": 90.0, "mean_abs_traj_adv": 0.0}, ""),
        (0.5, "none", {"top_share": 0.91}, "1 % of its turns hold over 90 % of the"),
        (0.5, "none", {"top_share": 0.89}, ""),
        (0.5, "none", {"offset_share": 0.71}, "over 85 % of the absolute sum of its"),
        (0.5, "none", {"offset_share": 0.69}, ""),
        (0.5, "group", {"max_abs_credit": 5e-7}, "its credit is smaller than norm_floor 1e-06"),
        (0.5, "group", {"max_abs_credit": 2e-6}, ""),
        (0.5, "none", {"max_abs_credit": 5e-7}, ""),
    ],
)
def test_a_round_names_credit_of_an_unfit_size(alpha, turn_norm, sizes, caution):
    credit = {"kind": "progress"}
    config = MethodConfig(name="Mine", alpha=alpha, turn_norm=turn_norm, credit=credit)
    row = {"n_groups": 2, "flat_credit_groups": 0, "turn_share": 0.9} | SIZES | sizes
    text = credit_caution(SimpleNamespace(id=RoundId(config, 11, 1), rows=[row, row]))
    assert text.startswith(caution) and bool(text) == bool(caution)


def share(name, advantages):
    return advantage_shares(advantages)[f"{name}_share"]


def test_the_share_of_the_largest_hundredth_of_turns():
    ones = np.ones(100)
    assert share("top", [ones]) == pytest.approx(0.01)
    assert share("top", [np.append(ones[1:], -10.0)]) == pytest.approx(100 / 199)
    assert share("top", [ones, np.append(ones[2:], [3.0, 4.0])]) == pytest.approx(25 / 223)
    assert share("top", [ones, ones, np.array([3.0, 4.0])]) == pytest.approx(25 / 225)
    # Of fewer turns, one is more than a hundredth.
    assert share("top", [ones[1:]]) is None and share("top", []) is None
    assert share("top", [np.zeros(100)]) is None


def test_the_share_of_the_offset():
    assert share("offset", [np.array([2.0]), np.array([0.0, 4.0])]) == 1
    # |2 - 1 - 5| of 8
    assert share("offset", [np.array([2.0, -1.0]), np.array([-5.0])]) == pytest.approx(4 / 8)
    assert share("offset", [np.array([1.0, -1.0])]) == 0
    assert share("offset", [np.zeros(3)]) is None and share("offset", []) is None


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_a_round_names_credit_that_depends_on_order_unless_it_is_not_read(alpha):
    config = MethodConfig(name="Mine", alpha=alpha, credit={"kind": "progress"})
    row = {"n_groups": 2, "flat_credit_groups": 0, "turn_share": 0.9} | SIZES
    rows = [row | {"order_dependent_credit": True}, row]
    text = credit_caution(SimpleNamespace(id=RoundId(config, 11, 1), rows=rows))
    assert text.startswith("the credit of a group" if alpha < 1 else "alpha is 1, so its credit")
