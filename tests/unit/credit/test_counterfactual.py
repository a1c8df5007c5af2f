"""Counterfactual credit on a game of known values."""

from collections import Counter

import numpy as np
import pytest
from hall import TURN_CAP
from places import PROJECT
from tiny_policy import DOORS

from hgrpo.config.read import read_yaml, validate
from hgrpo.credit.base import Context, Group, make_assigner
from hgrpo.credit.counterfactual import draw_turns, uncertain_turns
from hgrpo.credit.kinds import CreditConfig
from hgrpo.learning.advantages import turn_advantages
from hgrpo.learning.method import MethodConfig
from hgrpo.rollout.branching import Start


def assigner(collector, **settings):
    config = CreditConfig(kind="counterfactual", **settings)
    return make_assigner(config, Context("toy", collector=collector))


def test_played_on_from_a_turn_the_past_is_the_same(collector, group):
    before = max(group.trajectories, key=lambda t: len(t.turns))
    turns = len(before.turns) - 1
    played = collector.play([Start(before.task, 0, 77, TURN_CAP, before, turns)])[0]
    assert played.turns[:turns] == before.turns[:turns]
    start = before.turns[turns].span[0]
    assert played.token_ids[:start] == before.token_ids[:start]
    for turn in played.turns:
        assert turn.token_ids == played.token_ids[slice(*turn.span)]
        assert len(turn.logprobs) == len(turn.token_ids)
    assert len(played.turns) <= TURN_CAP


def test_credit_is_the_return_less_what_the_policy_would_get(collector, group):
    many = assigner(collector, turns_per_trajectory=None, alternatives=60, horizon=1)
    credit = many.assign(group)
    for row, trajectory in zip(credit, group.trajectories, strict=True):
        # With one turn left, one door out of three has the coin behind it.
        expected = trajectory.env_return - 1 / 3
        assert len(row) == len(trajectory.turns)
        np.testing.assert_allclose(row, expected, atol=0.25)
    counts = many.report()
    turns = sum(len(t.turns) for t in group.trajectories)
    assert counts["cf_branches"] == counts["cf_replies"] == 60 * turns
    assert many.report()["cf_branches"] == 0


def test_the_episode_is_no_alternative_of_its_own(collector, group):
    one = assigner(collector, turns_per_trajectory=None, alternatives=1, horizon=1)
    credit = np.concatenate(one.assign(group))
    # Returns are 0 or 1, and so is one alternative.
    assert set(np.abs(credit)) == {0.0, 1.0}


def test_turns_that_were_not_chosen_get_nothing(collector, group):
    one = assigner(collector, turns_per_trajectory=1, alternatives=1)
    for credit, verdicts in zip(one.assign(group), one.verdicts(group), strict=True):
        assert np.count_nonzero(credit) <= 1
        drawn = ~np.isnan(verdicts)
        assert drawn.sum() == 1
        np.testing.assert_array_equal(credit[drawn], verdicts[drawn])
        assert not credit[~drawn].any()


def test_turns_are_drawn_among_the_uncertain_by_hand():
    entropies = np.array([0.1, 2.0, 0.5, 0.0, 0.7])
    rng = np.random.default_rng(0)
    assert uncertain_turns(entropies, 0.5, None, rng) == [1, 2, 4]
    assert uncertain_turns(entropies, 3.0, 2, rng) == []
    drawn = [tuple(uncertain_turns(entropies, 0.5, 2, rng)) for _ in range(300)]
    counts = Counter(drawn)
    assert set(counts) == {(1, 2), (1, 4), (2, 4)}
    # Each pair has one chance in three: 100 of 300, with a deviation of 8.
    assert all(abs(count - 100) < 40 for count in counts.values())
    assert draw_turns(3, 5, rng) == draw_turns(3, None, rng) == [0, 1, 2]


def test_a_turn_without_a_choice_is_not_paid_for(policy, collector, group):
    """The hall's policy chooses among three doors at every turn: about log 3 = 1.1 nats."""

    def drawn(least):
        config = CreditConfig(kind="counterfactual", alternatives=1, least_entropy=least)
        player = make_assigner(config, Context("toy", policy=policy, collector=collector))
        verdicts = player.verdicts(group)
        return sum(int((~np.isnan(row)).sum()) for row in verdicts), player.report()["cf_branches"]

    turns = sum(min(2, len(t.turns)) for t in group.trajectories)
    assert drawn(0.5) == (turns, turns)
    assert drawn(3.0) == (0, 0)


def test_counterfactuals_may_be_played_for_a_share_of_the_groups(collector, group):
    few = assigner(collector, alternatives=1, share_of_groups=0.3)
    groups = [Group(group.trajectories[:1], ("test", number)) for number in range(60)]
    played = [not np.isnan(few.verdicts(each)[0]).all() for each in groups]
    # 18 of 60, with a deviation of 3.5.
    assert 6 < sum(played) < 30
    again = assigner(collector, alternatives=1, share_of_groups=0.3)
    assert played == [not np.isnan(again.verdicts(each)[0]).all() for each in groups]
    left_out = [each for each, one in zip(groups, played, strict=True) if not one]
    assert not any(few.assign(each)[0].any() for each in left_out)


def test_the_shipped_arm_gives_turns_that_were_not_drawn_no_advantage(collector, group):
    """Turns that were drawn get their credit as it is, not a multiple of it."""
    path = PROJECT / "configs/methods/Counterfactual.yaml"
    method = validate(MethodConfig, read_yaml(path), str(path))
    player = make_assigner(method.credit, Context("toy", collector=collector))
    verdicts = player.verdicts(group)
    assert any(np.isnan(row).any() for row in verdicts)
    advantages = turn_advantages(player.assign(group), method.turn_norm, method.norm_floor)
    for row, verdict in zip(advantages, verdicts, strict=True):
        np.testing.assert_array_equal(row, np.nan_to_num(verdict))


def test_the_same_stream_gives_the_same_credit_in_any_order(collector, group):
    one = assigner(collector).assign(group)
    two = assigner(collector).assign(Group(group.trajectories[::-1], group.stream))[::-1]
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def test_a_replay_that_is_answered_differently_is_an_error(collector, group):
    long = next(t for t in group.trajectories if len(t.turns) > 1)
    first = long.turns[0]
    wrong = next(f"open {door}" for door in DOORS if f"open {door}" != first.action)
    first.action, original = wrong, first.action
    try:
        with pytest.raises(RuntimeError, match="after replaying .* expected"):
            collector.play([Start(long.task, 0, 1, TURN_CAP, long, 1)])
    finally:
        first.action = original


def test_stored_rollouts_are_credited_at_every_turn():
    settings = CreditConfig(kind="counterfactual", least_entropy=1.0, share_of_groups=0.2).declared
    whole = settings.on_stored_rollouts(fitted=False).settings
    assert (whole.turns_per_trajectory, whole.least_entropy, whole.share_of_groups) == (None, 0, 1)
