"""Plays a panel with a policy and notes every episode."""

from collections.abc import Callable, Sequence

from hgrpo.agent.trajectory import Trajectory
from hgrpo.envs.base import Task, TextEnv
from hgrpo.policy.policy import Policy, SavedPolicy
from hgrpo.rollout.collector import Collector
from hgrpo.rollout.engine import Sampling
from hgrpo.rollout.torch_engine import TorchEngine


def play_panel(
    policy: Policy | SavedPolicy,
    make_env: Callable[[], TextEnv],
    tasks: Sequence[Task],
    temperature: float,
    stream: Sequence[object],
    turn_cap: int,
    max_action_tokens: int,
    in_flight: int,
    on_done: Callable[[], None] = lambda: None,
) -> list[Trajectory]:
    """One episode a task, in panel order; temperature 0 is greedy."""
    engine = TorchEngine(
        policy,
        min(in_flight, len(tasks)),
        Sampling(temperature, max_action_tokens),
        policy.conversation.end_id,
    )
    collector = Collector(engine, policy.conversation, make_env, turn_cap, max_action_tokens)
    groups = collector.collect(tasks, 1, (*stream, temperature), on_done)
    return [group[0] for group in groups]


def episode_row(trajectory: Trajectory) -> dict:
    """What the statistics know of an episode."""
    return {
        "task_id": trajectory.task.task_id,
        "content_hash": trajectory.task.content_hash,
        "task_type": trajectory.task.task_type,
        "success": trajectory.success,
        "env_return": trajectory.env_return,
        "final_progress": sum(turn.progress for turn in trajectory.turns),
        "n_turns": len(trajectory.turns),
        "n_inadmissible": trajectory.inadmissible,
        "n_overlong": trajectory.overlong,
        "n_empty": trajectory.empty,
        "truncated": trajectory.truncated,
        "n_action_tokens": trajectory.action_tokens,
    }
