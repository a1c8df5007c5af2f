"""A round with a critic, a filter and rules for stopping: what it trains on, how it resumes."""

import numpy as np
import pytest
import torch
from toy_round import FLAT, PPO, check_resume, run, small_round, turns_of

from hgrpo.errors import UserError
from hgrpo.learning.filters.settings import FilterConfig
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.settings import CollapseConfig, CriticConfig, KlConfig
from hgrpo.learning.stops import (
    EmptySteps,
    LowValidation,
    RewardCollapse,
    StopConfig,
    StopState,
)
from hgrpo.study.study import load_study


def test_a_killed_round_of_ppo_ends_as_if_it_had_not_been_killed(imitator, tmp_path):
    changes = {
        "stops": StopConfig(reward_collapse=RewardCollapse(window=2)),
        "filter": FilterConfig(strategy="top_p", value=0.9, include_zero=False),
        "collapse": CollapseConfig(pairs=8),
    }

    def make(scratch):
        return small_round(imitator, scratch, PPO, **changes)

    whole = make(tmp_path / "whole")
    assert "collapse_any_turn_matched" in run(whole)[-1]
    assert whole.learner.stop.seen == 3 and whole.learner.stop.baseline > 0
    # In the third step.
    check_resume(whole, make, tmp_path / "killed", 2 * 16 + 5)


def test_a_warming_critic_learns_and_the_policy_stays(imitator, tmp_path):
    critic = CriticConfig(warmup_steps=2)
    play = small_round(imitator, tmp_path, PPO, critic=critic)
    start = play.learner.policy.trained_state()
    values = play.learner.critic.weights()
    rows = run(play)
    assert [row["n_updates"] for row in rows] == [0, 0, 2]
    assert all(row["critic_loss"] > 0 for row in rows)
    again = small_round(imitator, tmp_path / "short", PPO, critic=critic, steps_per_round=2)
    run(again)
    for name, tensor in again.learner.policy.trained_state().items():
        assert torch.equal(tensor, start[name])
    moved = again.learner.critic.weights()
    assert any(not torch.equal(moved[name], values[name]) for name in moved)


def test_the_update_learns_from_what_the_filter_keeps(imitator, tmp_path):
    best = FilterConfig(strategy="top_k_abs", value=1)
    play = small_round(imitator, tmp_path / "a", filter=best, steps_per_round=1)
    (row,) = run(play)
    assert row["n_trained_groups"] == row["filter_kept_groups"] == 1
    assert (row["n_trained_trajectories"], row["n_updates"]) == (4, 2)
    learnt = advantages(play).notna().groupby("task_id").all()
    assert sorted(learnt) == [False, False, False, True]
    # RAGEN's way: the smaller batch gets fewer steps.
    changes = {"filter": best, "minibatch_trajectories": 4, "steps_per_round": 1}
    (row,) = run(small_round(imitator, tmp_path / "b", **changes))
    assert row["n_updates"] == 1
    (row,) = run(small_round(imitator, tmp_path / "c", **changes | {"filter": None}))
    assert row["n_updates"] == -(-row["n_trained_trajectories"] // 4) > 1


def advantages(play):
    """The advantages of the only step's turns; NaN where nothing was learnt."""
    return turns_of(play).set_index(["task_id", "rollout", "turn"])["advantage"]


@pytest.mark.parametrize("method", [FLAT, PPO], ids=["group", "critic"])
def test_soft_weights_scale_the_advantages_of_each_group(imitator, tmp_path, method):
    made, rows = {}, {}
    for name, soft in (("soft", FilterConfig(soft=True)), ("plain", None)):
        play = small_round(imitator, tmp_path / name, method, filter=soft, steps_per_round=1)
        (rows[name],) = run(play)
        made[name] = advantages(play)
    returns = turns_of(play)
    spread = returns.groupby(["task_id", "rollout"])["env_reward"].sum().groupby("task_id").std()
    weights = made["plain"].index.get_level_values("task_id").map(spread / spread.max())
    assert 0 < np.mean(weights) < 1
    assert made["soft"].tolist() == pytest.approx((made["plain"] * weights).tolist())
    # A critic learns from all groups alike, and the whitening counts them alike.
    for key in ("critic_loss", "advantage_mean", "advantage_deviation", "n_trained_trajectories"):
        assert rows["soft"].get(key) == rows["plain"].get(key)


def test_a_filter_keeps_whole_trajectories_under_a_critic(imitator, tmp_path):
    method = MethodConfig(name="PPO", advantage="turn_gae")
    best = FilterConfig(score="entropy", strategy="top_k_abs", value=1)
    play = small_round(imitator, tmp_path, method, filter=best, steps_per_round=1)
    (row,) = run(play)
    assert (row["filter_kept_groups"], row["n_trained_trajectories"], row["n_updates"]) == (1, 4, 2)
    learnt = advantages(play).notna()
    assert learnt.groupby("task_id").agg(["all", "any"]).sum().tolist() == [1, 1]


def test_a_stronger_filter_takes_as_many_steps_and_leaves_the_rest_alone(imitator, tmp_path):
    few = FilterConfig(strategy="top_k_abs", value=2)
    method = FLAT.model_copy(update={"dead_groups": "keep"})
    play = small_round(imitator, tmp_path / "few", method, filter=few, steps_per_round=1)
    (row,) = run(play)
    assert (row["n_trained_trajectories"], row["n_updates"]) == (8, 2)
    learnt = advantages(play).dropna()
    whole = small_round(imitator, tmp_path / "all", method, steps_per_round=1)
    run(whole)
    # A dropped group changes no advantage of the others.
    assert learnt.equals(advantages(whole)[learnt.index])


def test_rules_see_the_returns_before_the_filter(imitator, tmp_path):
    changes = {
        "filter": FilterConfig(strategy="top_k_abs", value=1),
        "stops": StopConfig(reward_collapse=RewardCollapse(window=2)),
    }
    for row in run(small_round(imitator, tmp_path, steps_per_round=1, **changes)):
        assert row["stop_window_mean"] == row["return_deviation"] == row["filter_mean_score"]
        assert row["filter_mean_kept_score"] > row["filter_mean_score"]


def test_a_run_whose_filter_leaves_nothing_stops_and_stays_as_it_is(imitator, tmp_path):
    # Rewards are at most 1, so no deviation is above 9, and every step is empty.
    changes = {
        "filter": FilterConfig(include_zero=False, zero_tolerance=9.0),
        "stops": StopConfig(empty_steps=EmptySteps(steps=2)),
        "kl": KlConfig(init=0.0),
    }
    play = small_round(imitator, tmp_path / "first", **changes)
    start = play.learner.policy.trained_state()
    rows = run(play)
    assert [row["n_trained_trajectories"] for row in rows] == [0, 0]
    assert len(rows) == 2 and [row["stop_empty_steps"] for row in rows] == [1, 2]
    stop = play.learner.stop
    assert (stop.status, stop.rule, stop.round, stop.step) == ("stopped", "empty_steps", 1, 1)
    later = small_round(imitator, tmp_path / "second", index=2, **changes)
    later.learner.load_state(play.learner.state())
    assert run(later) == [] and later.learner.stop == stop
    for name, tensor in later.learner.policy.trained_state().items():
        assert torch.equal(tensor, start[name])
    assert turns_of(later).empty


def test_evaluations_stop_a_run_before_its_next_round(imitator, tmp_path):
    stops = StopConfig(low_validation=LowValidation(rounds=2, below=0.1))
    play = small_round(imitator, tmp_path, index=4, stops=stops)
    play.validation = [0.3, 0.05, 0.0]
    assert run(play) == []
    assert play.learner.stop == StopState("stopped", "low_validation", 4, None)
    play.learner.stop = StopState()
    play.validation = [0.05, 0.3, 0.0]
    assert len(run(play)) == 3


@pytest.mark.parametrize("method", [FLAT, PPO])
def test_the_step_at_which_a_run_stops_trains_on_nothing(imitator, tmp_path, method):
    # A floor that no deviation reaches: the second step is below it, and none before it counts.
    stops = StopConfig(reward_collapse=RewardCollapse(window=1, floor=9.0))
    play = small_round(imitator, tmp_path, method, stops=stops)
    rows = run(play)
    assert [row["n_updates"] > 0 for row in rows] == [True, False]
    assert [row["n_trained_trajectories"] > 0 for row in rows] == [True, False]
    assert play.learner.stop.rule == "reward_collapse"
    missing = turns_of(play)["advantage"].isna().groupby(turns_of(play)["step"])
    assert missing.all().tolist() == [False, True]


def test_a_critic_permits_groups_of_one(imitator, tmp_path, project):
    (row,) = run(small_round(imitator, tmp_path, PPO, rollouts_per_task=1, steps_per_round=1))
    assert (row["n_trained_trajectories"], row["n_updates"]) == (4, 2)
    assert row["return_deviation"] == 0 < row["advantage_deviation"]
    path = project / "configs/studies/sokoban_smoke.yaml"
    alone = {"training.rollouts_per_task": 1, "methods": "SFTOnly,PPO"}
    assert load_study(path, alone).training["PPO"].rollouts_per_task == 1
    with pytest.raises(UserError, match="rollouts_per_task: 1: flatGRPO compares the rollouts of"):
        load_study(path, alone | {"methods": "flatGRPO,PPO"})
