"""Return to go: the sums by hand, and its expected gradient against the true one.

The game is small enough to add up all trajectories, and all groups of them. The policy itself
decides how long a trajectory is.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from judge_cases import failures
from places import PROJECT

from hgrpo.config.read import read_yaml, validate
from hgrpo.credit.base import Context, Group, make_assigner
from hgrpo.credit.kinds import CreditConfig
from hgrpo.credit.to_go import ToGo, credit_to_go, peer_baselines, to_go
from hgrpo.learning.advantages import blend, trajectory_advantages, turn_advantages
from hgrpo.learning.method import MethodConfig

STOP, CAP, ACTIONS = 0, 3, 3
RNG = np.random.default_rng(3)
HISTORIES = [
    history
    for length in range(CAP)
    for history in itertools.product(range(1, ACTIONS), repeat=length)
]
LOGITS = RNG.normal(size=(len(HISTORIES), ACTIONS))
CREDIT = RNG.normal(size=(len(HISTORIES), ACTIONS))
PAID = RNG.normal(size=(len(HISTORIES), ACTIONS))
POLICY = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)


@dataclass
class Played:
    """A trajectory: its probability, each turn's credit and score, and its return."""

    probability: float
    credit: np.ndarray
    scores: np.ndarray
    paid: float


def played(actions):
    places = [HISTORIES.index(actions[:t]) for t in range(len(actions))]
    scores = np.zeros((len(actions), *LOGITS.shape))
    for turn, (place, action) in enumerate(zip(places, actions, strict=True)):
        scores[turn, place] = np.eye(ACTIONS)[action] - POLICY[place]
    return Played(
        float(np.prod([POLICY[p, a] for p, a in zip(places, actions, strict=True)])),
        np.array([CREDIT[p, a] for p, a in zip(places, actions, strict=True)]),
        scores,
        sum(PAID[p, a] for p, a in zip(places, actions, strict=True)),
    )


ALL = [
    played((*history, action))
    for history in HISTORIES
    for action in range(ACTIONS)
    if action == STOP or len(history) == CAP - 1
]


def true_gradient(value):
    """Gradient of the expected value of a trajectory with respect to the logits."""
    return sum(one.probability * value(one) * one.scores.sum(axis=0) for one in ALL)


def expected_gradient(size, advantages):
    """Expected gradient of a group of `size` trajectories; `advantages` gives K rows [T_k]."""
    total = np.zeros_like(LOGITS)
    for group in itertools.product(ALL, repeat=size):
        chance = np.prod([one.probability for one in group])
        for one, row in zip(group, advantages(group), strict=True):
            total += chance / size * np.tensordot(row, one.scores, 1)
    return total


def misfit(gradient, true):
    """Distance to the true gradient after the best change of scale, relative to its length."""
    scale = (gradient * true).sum() / (gradient**2).sum()
    return np.linalg.norm(scale * gradient - true) / np.linalg.norm(true)


PROGRESS = true_gradient(lambda one: one.credit.sum())


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("baseline", ["peers", "playing_peers", "none"])
def test_the_expected_gradient_is_the_true_one(size, baseline):
    settings = ToGo(baseline=baseline)
    gradient = expected_gradient(
        size, lambda group: credit_to_go([g.credit for g in group], settings)
    )
    np.testing.assert_allclose(gradient, PROGRESS, atol=1e-12)


def mean_per_turn_number(group):
    """The sum to go less its mean over all that reached the turn, the trajectory itself too."""
    rows = [to_go(one.credit, 1.0) for one in group]
    longest = max(map(len, rows))
    means = [np.mean([row[t] for row in rows if len(row) > t]) for t in range(longest)]
    return [row - means[: len(row)] for row in rows]


def position(group):
    return turn_advantages([to_go(one.credit, 1.0) for one in group], "position", 1e-6)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("biased", [mean_per_turn_number, position])
def test_a_mean_that_holds_the_trajectory_itself_is_biased(size, biased):
    assert misfit(expected_gradient(size, biased), PROGRESS) > 0.05


def test_progress_without_what_follows_is_biased():
    gradient = expected_gradient(1, lambda group: [one.credit for one in group])
    assert misfit(gradient, PROGRESS) > 0.05


def test_the_shipped_arm_is_unbiased_for_the_return_and_the_progress():
    path = PROJECT / "configs/methods/ProgressiveToGo.yaml"
    method = validate(MethodConfig, read_yaml(path), str(path))
    size = 3

    def advantages(group):
        rows = credit_to_go([one.credit for one in group], method.credit.declared.to_go)
        returns = np.array([one.paid for one in group])
        whole = trajectory_advantages(returns, method.group_norm, method.norm_floor)
        turns = turn_advantages(rows, method.turn_norm, method.norm_floor)
        return blend(method.alpha, whole, turns)

    returns = true_gradient(lambda one: one.paid)
    expected = 0.5 * (size - 1) / size * returns + 0.5 * PROGRESS
    np.testing.assert_allclose(expected_gradient(size, advantages), expected, atol=1e-12)


def test_sums_by_hand():
    row = np.array([1.0, 0.0, 4.0])
    np.testing.assert_array_equal(to_go(row, 1.0), [5, 4, 4])
    np.testing.assert_array_equal(to_go(row, 0.5), [2, 2, 4])
    np.testing.assert_array_equal(to_go(row, 0.0), row)
    assert to_go(np.zeros(0), 1.0).shape == (0,)


def test_baselines_by_hand():
    rows = [np.array([6.0, 4.0]), np.array([2.0]), np.array([1.0, 1.0, 5.0])]
    peers = peer_baselines(rows, "peers")
    assert [row.tolist() for row in peers] == [[1.5, 0.5], [3.5], [4.0, 2.0, 0.0]]
    playing = peer_baselines(rows, "playing_peers")
    assert [row.tolist() for row in playing] == [[1.5, 1.0], [3.5], [4.0, 4.0, 0.0]]
    none = peer_baselines(rows, "none")
    assert [row.tolist() for row in none] == [[0, 0], [0], [0, 0, 0]]
    assert [row.tolist() for row in peer_baselines(rows[:1], "peers")] == [[0, 0]]


@pytest.mark.parametrize("baseline", ["peers", "playing_peers"])
def test_equal_sums_leave_exactly_nothing(baseline):
    # 8 x 0.1 is not 0.8 in floating point, and a group whose credit is 0 must count as dead.
    rows = [np.full(2, 0.1)] * 8
    for row, mean in zip(rows, peer_baselines(rows, baseline), strict=True):
        np.testing.assert_array_equal(row, mean)


def test_progress_to_go_by_hand():
    trajectories = failures(2)
    for trajectory, progress in zip(trajectories, ([0.5, 0, 0, 0.5], [0, 0, 0, 0]), strict=True):
        for turn, value in zip(trajectory.turns, progress, strict=True):
            turn.progress = value
    config = CreditConfig(kind="progress", to_go={"discount": 1.0})
    rows = make_assigner(config, Context()).assign(Group(trajectories, ("x",)))
    assert [row.tolist() for row in rows] == [[1, 0.5, 0.5, 0.5], [-1, -0.5, -0.5, -0.5]]


def test_progress_spread_over_a_trajectory_is_flat_grpo_of_a_graded_return():
    trajectories = failures(3)
    for trajectory, done in zip(trajectories, (0.75, 0.0, 0.25), strict=True):
        trajectory.turns[1].progress = done
    config = CreditConfig(kind="progress", spread="trajectory")
    rows = make_assigner(config, Context()).assign(Group(trajectories, ("x",)))
    assert [row.tolist() for row in rows] == [[0.75] * 4, [0.0] * 4, [0.25] * 4]
    flat = trajectory_advantages(np.array([0.75, 0.0, 0.25]), "std", 1e-6)
    for row, advantage in zip(turn_advantages(rows, "group", 1e-6), flat, strict=True):
        np.testing.assert_allclose(row, advantage, rtol=1e-12)
    config = {"kind": "progress", "spread": "trajectory", "to_go": {}}
    with pytest.raises(ValueError, match="spread: trajectory has an effect only with to_go: null"):
        make_assigner(CreditConfig(**config), Context())


@pytest.mark.parametrize("kind", ["progress", "turnrd"])
def test_a_second_baseline_is_refused(kind):
    config = {"name": "x", "alpha": 0.5, "credit": {"kind": kind, "to_go": {}}}
    with pytest.raises(ValueError, match="turn_norm: .* requires 'none', not 'position'"):
        MethodConfig(**config)
    config["credit"]["to_go"] = {"baseline": "none"}
    assert MethodConfig(**config).turn_norm == "position"


@pytest.mark.parametrize(
    ("norm", "to_go_settings", "expected"),
    [
        ("position", None, 0.0),
        ("group", None, 0.0),
        ("none", ToGo(), 0.25),
    ],
)
def test_where_every_turn_earns_the_same_a_z_score_has_no_gradient(norm, to_go_settings, expected):
    """Each turn pays 1, and the first one goes on with probability 1/2: dJ/dlogit = 1/4."""
    total = 0.0
    for goes in itertools.product((False, True), repeat=3):
        rows = credit_to_go([np.ones(1 + go) for go in goes], to_go_settings)
        turns = turn_advantages(rows, norm, 1e-6)
        scores = [0.5 if go else -0.5 for go in goes]
        gradients = [row[0] * score for row, score in zip(turns, scores, strict=True)]
        total += np.mean(gradients) / 2 ** len(goes)
    assert total == pytest.approx(expected, abs=1e-12)


def test_equal_shares_to_go_by_hand():
    trajectories = failures(2)
    trajectories[0].turns[-1].env_reward = 2.0
    for turn in (turn for trajectory in trajectories for turn in trajectory.turns):
        turn.embedding = np.zeros(4, dtype=np.float32)
    config = CreditConfig(kind="turnrd", to_go={"baseline": "none"})
    rows = make_assigner(config, Context()).assign(Group(trajectories, ("x",)))
    # TurnRD without a fit shares the return of 2 equally among four turns.
    assert [row.tolist() for row in rows] == [[2, 1.5, 1, 0.5], [0, 0, 0, 0]]


def test_a_judges_scores_are_summed_too(tmp_path):
    group = Group(failures(3), ("x",))
    rubric = {"kind": "judge", "model": "offline-rubric", "base_url": "service"}
    plain, summed = (
        make_assigner(CreditConfig(**config), Context("alfworld", cache_dir=tmp_path)).assign(group)
        for config in (rubric, rubric | {"to_go": {"discount": 0.5}})
    )
    assert any(row.any() for row in plain)
    for row, expected in zip(summed, credit_to_go(plain, ToGo(discount=0.5)), strict=True):
        np.testing.assert_array_equal(row, expected)
