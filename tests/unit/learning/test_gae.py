import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgrpo.learning.gae import ESTIMATORS, bi_level_gae, gae, token_gae, turn_gae
from hgrpo.learning.settings import GaeConfig


def ends_of(*lengths):
    ends = np.zeros(sum(lengths), dtype=bool)
    ends[np.cumsum(lengths) - 1] = True
    return ends


@pytest.mark.parametrize(
    ("gamma", "lam", "expected"),
    [(1.0, 1.0, (0.9, 0.8, 0.7, 0.6)), (0.9, 0.5, (0.178325, 0.2185, 0.33, 0.6))],
)
def test_token_gae_bridges_what_the_environment_wrote(gamma, lam, expected):
    mask = np.array([1, 1, 0, 0, 1, 1], dtype=bool)
    values = np.array([0.1, 0.2, np.nan, np.nan, 0.3, 0.4])[mask]
    config = GaeConfig(gamma=gamma, lam=lam)
    made = token_gae(np.array([0.0, 1.0]), values, ends_of(2, 2), config)
    assert made.advantages == pytest.approx(expected)
    assert made.targets == pytest.approx(np.array(expected) + values)
    assert made.learnt.all()


def test_bi_level_gae_sees_a_turn_that_earns_nothing():
    values = np.array([0.5, 0.5, 0.5, 0.5])
    config = GaeConfig(gamma_high=0.5)
    made = bi_level_gae(np.array([0.0, 1.0]), values, ends_of(2, 2), config)
    # Turn 2: 1 - 0.5; turn 1: 0 + 0.5 * 0.5 - 0.5 + 0.5 * 0.5 = 0.
    assert made.advantages == pytest.approx([0.0, 0.0, 0.5, 0.5])


def test_turn_gae_by_hand():
    values = np.array([0.25, 9.0, 0.5, 9.0, 9.0])
    config = GaeConfig(gamma=0.5)
    made = turn_gae(np.array([0.0, 1.0]), values, ends_of(2, 3), config)
    # Turn 2: 1 - 0.5 = 0.5; turn 1: 0 + 0.5 * 0.5 - 0.25 + 0.5 * 0.5 = 0.25.
    assert made.advantages == pytest.approx([0.25, 0.25, 0.5, 0.5, 0.5])
    assert made.learnt.tolist() == [True, False, True, False, False]
    assert made.targets[made.learnt] == pytest.approx([0.5, 1.0])


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=5),
    st.sampled_from(sorted(ESTIMATORS)),
    st.integers(0, 2**32 - 1),
)
def test_undiscounted_advantages_are_what_is_still_earned_less_the_value(lengths, name, seed):
    rng = np.random.default_rng(seed)
    ends, rewards = ends_of(*lengths), rng.normal(size=len(lengths))
    values = rng.normal(size=sum(lengths))
    made = ESTIMATORS[name](rewards, values, ends, GaeConfig(gamma_high=1.0))
    to_go = np.repeat(np.cumsum(rewards[::-1])[::-1], lengths)
    assert made.targets[made.learnt] == pytest.approx(to_go[made.learnt])
    assert made.advantages[made.learnt] == pytest.approx((to_go - values)[made.learnt])


@given(st.integers(1, 8), st.integers(0, 2**32 - 1), st.floats(0, 1), st.floats(0, 1))
def test_true_values_leave_no_advantage(n, seed, gamma, lam):
    rewards = np.random.default_rng(seed).normal(size=n)
    values = np.zeros(n + 1)
    for t in reversed(range(n)):
        values[t] = rewards[t] + gamma * values[t + 1]
    assert gae(rewards, values[:-1], gamma, lam) == pytest.approx(np.zeros(n), abs=1e-12)


def test_bootstrapped_estimates_by_hand():
    """Rewards 1 and 2; values before the tokens 0.1 to 0.4; the state after is worth 0.8."""
    rewards, values, ends = np.array([1.0, 2.0]), np.array([0.1, 0.2, 0.3, 0.4]), ends_of(2, 2)
    config = GaeConfig(gamma=0.5, lam=0.5, gamma_high=0.9)
    # Last token: 2 + 0.5 * 0.8 - 0.4 = 2. Then 0.5 * 0.4 - 0.3 + 0.25 * 2 = 0.4,
    # 1 + 0.5 * 0.3 - 0.2 + 0.25 * 0.4 = 1.05, 0.5 * 0.2 - 0.1 + 0.25 * 1.05 = 0.2625.
    made = token_gae(rewards, values, ends, config, 0.8)
    assert made.advantages == pytest.approx([0.2625, 1.05, 0.4, 2.0])
    # Turn 2: 2 + 0.5 * 0.8 - 0.3 = 2.1. Turn 1: 1 + 0.5 * 0.3 - 0.1 + 0.25 * 2.1 = 1.575.
    made = turn_gae(rewards, values, ends, config, 0.8)
    assert made.advantages == pytest.approx([1.575, 1.575, 2.1, 2.1])
    # Turns at their last tokens: 2 + 0.9 * 0.8 - 0.4 = 2.32, 1 + 0.9 * 0.4 - 0.2 + 0.45 * 2.32
    # = 2.204. Within the turns: 0.5 * 0.4 - 0.3 + 0.25 * 2.32 = 0.48,
    # 0.5 * 0.2 - 0.1 + 0.25 * 2.204 = 0.551.
    made = bi_level_gae(rewards, values, ends, config, 0.8)
    assert made.advantages == pytest.approx([0.551, 2.204, 0.48, 2.32])
