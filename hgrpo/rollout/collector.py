"""Plays groups of episodes: many conversations in flight, finished ones replaced at once."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hgrpo.agent.conversation import Conversation
from hgrpo.agent.trajectory import Trajectory, Turn
from hgrpo.envs.base import Task, TextEnv
from hgrpo.rollout.engine import Completion, Request, RolloutEngine
from hgrpo.streams import key


@dataclass
class _Episode:
    env: TextEnv
    trajectory: Trajectory
    observation: str
    stream: int


class Collector:
    """Collects trajectories from one engine and a pool of environments."""

    def __init__(
        self,
        engine: RolloutEngine,
        conversation: Conversation,
        make_env: Callable[[], TextEnv],
        turn_cap: int,
        max_reply_tokens: int,
    ):
        self.engine = engine
        self._conversation = conversation
        self._make_env = make_env
        self._turn_cap = turn_cap
        self._max_reply_tokens = max_reply_tokens
        self._idle_envs: list[TextEnv] = []

    def collect(
        self,
        tasks: Sequence[Task],
        rollouts: int,
        stream: Sequence[object],
        on_done: Callable[[], None] = lambda: None,
    ) -> list[list[Trajectory]]:
        """Play every task `rollouts` times.

        Args:
            tasks: one group each.
            rollouts: K, trajectories in a group.
            stream: leading parts of the streams' names, such as ("train", seed, round, step).
            on_done: called after every finished trajectory.

        Returns:
            Groups in the order of `tasks`, trajectories in the order of their rollout index; what
            is in them does not depend on how many were in flight.
        """
        waiting = deque((t, k) for t in range(len(tasks)) for k in range(rollouts))
        playing: dict[int, _Episode] = {}
        groups: list[list[Trajectory | None]] = [[None] * rollouts for _ in tasks]
        while waiting or playing:
            while waiting and len(playing) < self.engine.capacity:
                t, k = waiting.popleft()
                name = t * rollouts + k
                playing[name] = self._begin(tasks[t], k, stream)
                self._ask(name, playing[name])
            for completion in self.engine.step():
                name = completion.conversation
                episode = playing[name]
                if self._play(episode, completion):
                    self._ask(name, episode)
                    continue
                self.engine.release(name)
                self._idle_envs.append(episode.env)
                groups[name // rollouts][name % rollouts] = episode.trajectory
                del playing[name]
                on_done()
        return groups  # type: ignore[return-value]

    def _begin(self, task: Task, rollout: int, stream: Sequence[object]) -> _Episode:
        env = self._idle_envs.pop() if self._idle_envs else self._make_env()
        first = env.reset(task)
        trajectory = Trajectory(task, rollout, first.goal)
        trajectory.token_ids.extend(self._conversation.opening(first.text))
        return _Episode(env, trajectory, first.text, key(*stream, task.task_id, rollout))

    def _ask(self, name: int, episode: _Episode) -> None:
        self.engine.submit(Request(name, episode.trajectory.token_ids, episode.stream))

    def _play(self, episode: _Episode, completion: Completion) -> bool:
        """Act on a reply; False when the episode is over."""
        trajectory = episode.trajectory
        action = self._conversation.command(completion.token_ids)
        start = len(trajectory.token_ids)
        trajectory.token_ids.extend(completion.token_ids)
        trajectory.behaviour_logprobs.extend(completion.logprobs)
        step = episode.env.step(action)
        trajectory.turns.append(
            Turn(
                observation=episode.observation,
                action=action,
                span=(start, len(trajectory.token_ids)),
                env_reward=step.env_reward,
                progress=step.progress,
                admissible=bool(step.info["admissible"]),
                overlong=completion.overlong,
            )
        )
        trajectory.success = step.success
        if step.done:
            return False
        if len(trajectory.turns) >= self._turn_cap:
            trajectory.truncated = True
            return False
        if completion.overlong:
            # Context only: the closing token was not sampled, so no span covers it.
            trajectory.token_ids.append(self._conversation.end_id)
        episode.observation = step.observation.text
        trajectory.token_ids.extend(self._conversation.observation(step.observation.text))
        if len(trajectory.token_ids) + self._max_reply_tokens > self.engine.max_length:
            trajectory.truncated = trajectory.context_overflow = True
            return False
        return True
