"""A round with a critic, a filter and rules for stopping: what it trains on, how it resumes."""

import numpy as np
import pytest
import torch
from hgrpo.learning.stop_settings import EmptySteps, LowValidation, RewardCollapse, StopConfig
from tiny_policy import hall_tasks
from torch.optim import AdamW
from toy_round import TRAINING, KillError, make_round, untimed

from hgrpo.credit.base import Context, make_assigner
from hgrpo.errors import UserError
from hgrpo.learning.checkpoints import Checkpoints, write_state
from hgrpo.learning.critic import Critic, value_head
from hgrpo.learning.filters.settings import FilterConfig
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.round import RoundId
from hgrpo.learning.settings import CollapseConfig, CriticConfig, KlConfig
from hgrpo.learning.stops import StopState
from hgrpo.policy.load import load_policy
from hgrpo.study.study import load_study
from hgrpo.trajectories import store

SMALL = {"steps_per_round": 3, "tasks_per_step": 4, "rollouts_per_task": 4, "max_action_tokens": 4}
FLAT = MethodConfig(name="flatGRPO")
PPO = MethodConfig(name="PPO", advantage="gae")


def small_round(imitator, scratch, method=FLAT, index=1, **changes):
    config, base, sft = imitator
    scratch.mkdir(exist_ok=True)
    play = make_round(load_policy(config, base, sft), sft, scratch)
    play.id = RoundId(method, seed=1, index=index)
    play.assigner = make_assigner(method.credit, Context())
    play.panel = hall_tasks(60)
    play.checkpoints = Checkpoints(scratch)
    training = TRAINING.model_copy(update=SMALL | changes)
    play.learner.training = training
    play.learner.kl.coefficient = training.kl.init
    if method.uses_critic:
        body = load_policy(config, base, sft)
        head = value_head(body)
        optimiser = AdamW([*(p for _, p in body.trainable), *head.parameters()], lr=1e-3)
        play.learner.critic = Critic(body, head, optimiser, training.critic, 4096, None)
    return play


def run(play):
    return play.run(lambda row: None, lambda: None)


def test_a_killed_round_of_ppo_ends_as_if_it_had_not_been_killed(imitator, tmp_path):
    changes = {
        "stops": StopConfig(reward_collapse=RewardCollapse(window=2)),
        "filter": FilterConfig(strategy="top_p", value=0.9, include_zero=False),
        "collapse": CollapseConfig(pairs=8),
    }
    whole = small_round(imitator, tmp_path / "whole", PPO, **changes)
    expected = run(whole)
    seen = 0

    def kill():
        nonlocal seen
        seen += 1
        if seen == 2 * 16 + 5:  # in the third step
            raise KillError

    with pytest.raises(KillError):
        small_round(imitator, tmp_path / "killed", PPO, **changes).run(lambda row: None, kill)
    resumed = small_round(imitator, tmp_path / "killed", PPO, **changes)
    assert untimed(run(resumed)) == untimed(expected)
    assert resumed.learner.stop == whole.learner.stop
    written = []
    for name, play in (("whole", whole), ("killed", resumed)):
        write_state(play.learner.state(), tmp_path / name / "trainer_state.pt")
        written.append((tmp_path / name / "trainer_state.pt").read_bytes())
    assert written[0] == written[1]
    assert whole.learner.stop.seen == 3 and whole.learner.stop.baseline > 0
    assert "collapse_any_turn_matched" in expected[-1]
    for name in ("whole", "killed"):
        store.join_steps(tmp_path / name, 3, tmp_path / name)
    for file in ("turns.parquet", "sequences.parquet"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "killed" / file).read_bytes()
    for one, other in (
        (whole.learner.policy.trained_state(), resumed.learner.policy.trained_state()),
        (whole.learner.critic.weights(), resumed.learner.critic.weights()),
    ):
        assert all(torch.equal(one[name], other[name]) for name in one)


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
    (row,) = run(small_round(imitator, tmp_path / "a", filter=best, steps_per_round=1))
    assert row["n_trained_groups"] == row["filter_kept_groups"] == 1
    assert (row["n_trained_trajectories"], row["n_updates"]) == (4, 2)
    store.join_steps(tmp_path / "a", 1, tmp_path / "a")
    turns = store.read_turns(tmp_path / "a/turns.parquet").to_pandas()
    seen = turns.groupby("task_id")["advantage"].agg(lambda each: each.notna().all())
    assert sorted(seen) == [False, False, False, True]
    # RAGEN's way: the smaller batch gets fewer steps.
    changes = {"filter": best, "minibatch_trajectories": 4, "steps_per_round": 1}
    (row,) = run(small_round(imitator, tmp_path / "b", **changes))
    assert row["n_updates"] == 1
    (row,) = run(small_round(imitator, tmp_path / "c", **changes | {"filter": None}))
    assert row["n_updates"] == -(-row["n_trained_trajectories"] // 4) > 1


def advantages(play):
    """The advantages of the step's turns, by task, rollout and turn; None where nothing was learnt.

    The round has played one step.
    """
    folder = play.checkpoints.folder
    store.join_steps(folder, 1, folder)
    turns = store.read_turns(folder / "turns.parquet").to_pandas()
    return turns.set_index(["task_id", "rollout", "turn"])["advantage"]


@pytest.mark.parametrize("method", [FLAT, PPO], ids=["group", "critic"])
def test_soft_weights_scale_the_advantages_of_each_group(imitator, tmp_path, method):
    made, rows = {}, {}
    for name, soft in (("soft", FilterConfig(soft=True)), ("plain", None)):
        play = small_round(imitator, tmp_path / name, method, filter=soft, steps_per_round=1)
        (rows[name],) = run(play)
        made[name] = advantages(play)
    returns = store.read_turns(tmp_path / "plain/turns.parquet").to_pandas()
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
    store.join_steps(tmp_path / "second", 0, tmp_path / "second")
    assert store.read_turns(tmp_path / "second/turns.parquet").num_rows == 0


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
    store.join_steps(tmp_path, 2, tmp_path)
    turns = store.read_turns(tmp_path / "turns.parquet").to_pandas()
    assert turns.groupby("step")["advantage"].agg(lambda each: each.isna().all()).tolist() == [
        False,
        True,
    ]


def test_a_critic_permits_groups_of_one(imitator, tmp_path, project):
    (row,) = run(small_round(imitator, tmp_path, PPO, rollouts_per_task=1, steps_per_round=1))
    assert (row["n_trained_trajectories"], row["n_updates"]) == (4, 2)
    assert row["return_deviation"] == 0 < row["advantage_deviation"]
    path = project / "configs/studies/sokoban_smoke.yaml"
    alone = {"training.rollouts_per_task": 1, "methods": "SFTOnly,PPO"}
    assert load_study(path, alone).training["PPO"].rollouts_per_task == 1
    with pytest.raises(UserError, match="rollouts_per_task: 1: flatGRPO compares rollouts of a"):
        load_study(path, alone | {"methods": "flatGRPO,PPO"})
