"""Play a panel with a policy and record every episode."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hgrpo.envs.base import Task, TextEnv
from hgrpo.rollout.collector import Collector
from hgrpo.rollout.engine import RolloutEngine, Sampling
from hgrpo.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    from hgrpo.agent.chat import ChatConversation
    from hgrpo.agent.conversation import Conversation


def play_panel(
    engine: RolloutEngine,
    conversation: "Conversation | ChatConversation",
    make_env: Callable[[], TextEnv],
    tasks: Sequence[Task],
    temperature: float,
    stream: Sequence[object],
    turn_cap: int,
    max_action_tokens: int,
    on_done: Callable[[], None] = lambda: None,
) -> list[Trajectory]:
    """Play one episode per task, in panel order; temperature 0 is greedy."""
    engine.sampling = Sampling(temperature, max_action_tokens)
    collector = Collector(engine, conversation, make_env, turn_cap, max_action_tokens)
    groups = collector.collect(tasks, 1, (*stream, temperature), on_done)
    return [group[0] for group in groups]


def episode_row(trajectory: Trajectory) -> dict:
    """The row of episodes.parquet that describes an episode."""
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
