"""Plays groups of episodes, and starts a new episode as soon as another one finishes."""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hgrpo.errors import TrainingError, UserError
from hgrpo.games.base import Observation, Task, TextEnv, check_step, wrong
from hgrpo.games.streams import key
from hgrpo.rollout.branching import Branching, Start
from hgrpo.rollout.engine import Completion, Request, RolloutEngine
from hgrpo.trajectories.trajectory import FinalState, Trajectory, Turn

if TYPE_CHECKING:
    from hgrpo.agent.conversation import Conversation


@dataclass
class _Episode:
    env: TextEnv
    trajectory: Trajectory
    observation: Observation
    start: Start
    text: int | None = None


class Collector:
    """Collects trajectories from one engine and a pool of environments.

    Args:
        make_env: creates an environment. Called when an episode starts and no environment is idle.
        turn_cap: maximum number of turns of an episode.
        max_reply_tokens: maximum number of tokens of a reply, including the closing token.
    """

    def __init__(
        self,
        engine: RolloutEngine,
        conversation: "Conversation",
        make_env: Callable[[], TextEnv],
        turn_cap: int,
        max_reply_tokens: int,
    ):
        self.engine = engine
        self.turn_cap = turn_cap
        self._conversation = conversation
        self.make_env = make_env
        self._max_reply_tokens = max_reply_tokens
        self._idle_envs: list[TextEnv] = []

    @property
    def temperature(self) -> float:
        return self.engine.sampling.temperature

    def collect(
        self,
        tasks: Sequence[Task],
        rollouts: int,
        stream: Sequence[object],
        on_done: Callable[[], None] = lambda: None,
    ) -> list[list[Trajectory]]:
        """Play every task `rollouts` times, and call `on_done` after every finished trajectory.

        Args:
            stream: start of the name of each episode's random stream, such as ("train", seed,
                round, step).

        Returns:
            One list per task, with the task's trajectories by rollout index. The trajectories do
            not depend on the number of episodes in flight.

        Raises:
            UserError: a task's opening text leaves no room for a reply, or `check_group` fails.
        """
        starts = [
            Start(task, k, key(*stream, task.task_id, k), self.turn_cap)
            for task in tasks
            for k in range(rollouts)
        ]
        played = self.play(starts, on_done)
        groups = [played[i : i + rollouts] for i in range(0, len(played), rollouts)]
        for group in groups:
            check_group(self._idle_envs[0], group)
        return groups

    def play(
        self, starts: Sequence[Start], on_done: Callable[[], None] = lambda: None
    ) -> list[Trajectory]:
        """Play an episode from each start; return the trajectories in the order of the starts.

        The engine's capacity limits the number of episodes in flight. Starts in the same trajectory
        should be adjacent. The trajectory is then replayed only once and, if the engine can hold
        texts, prefilled only once.

        Raises:
            ReplayError: a replayed turn had a different result than in the recording.
            UserError: the tokens before the first new reply leave no room for the reply.
        """
        waiting = deque(enumerate(starts))
        branching = Branching(self.engine, self._take_env, starts)
        playing: dict[int, _Episode] = {}
        finished: list[Trajectory | None] = [None] * len(starts)
        while waiting or playing:
            while waiting and branching.admit(waiting[0][1], len(playing)):
                name, start = waiting.popleft()
                playing[name] = episode = self._begin(start, branching)
                self._ask(name, episode)
            for completion in self.engine.step():
                name = completion.conversation
                episode = playing[name]
                if self._play(episode, completion):
                    self._ask(name, episode)
                    continue
                self.engine.release(name)
                if episode.start.before is None:
                    self._close(episode)
                else:
                    branching.leave(episode.start)
                # Keep at most `capacity` idle environments. Otherwise, the environments forked for
                # new episodes would accumulate.
                if len(self._idle_envs) < self.engine.capacity:
                    self._idle_envs.append(episode.env)
                finished[name] = episode.trajectory
                del playing[name]
                on_done()
        return finished  # type: ignore[return-value]

    def _close(self, episode: _Episode) -> None:
        check_progress(episode.trajectory)
        situation = episode.env.situation()
        episode.trajectory.final = FinalState(episode.observation.text, *situation)

    def _take_env(self) -> TextEnv:
        return self._idle_envs.pop() if self._idle_envs else self.make_env()

    def _begin(self, start: Start, branching: Branching) -> _Episode:
        text = None
        if start.before is None:
            env = self._take_env()
            seen = env.reset(start.task)
            trajectory = Trajectory(start.task, start.rollout, seen.goal)
            trajectory.token_ids.extend(self._conversation.opening(seen.text))
        else:
            env, seen, text = branching.enter(start)
            trajectory = start.beginning(seen.goal)
        length = len(trajectory.token_ids)
        if length + self._max_reply_tokens > self.engine.max_length:
            raise UserError(
                f"task {start.task.task_id}: {length} tokens before the first reply plus "
                f"{self._max_reply_tokens} for the reply exceed the engine's limit of "
                f"{self.engine.max_length} tokens; increase `max_length` of the model or "
                "`engine.max_length`, or use a model with a longer context"
            )
        return _Episode(env, trajectory, seen, start, text)

    def _ask(self, name: int, episode: _Episode) -> None:
        tokens, stream = episode.trajectory.token_ids, episode.start.stream
        self.engine.submit(Request(name, tokens, stream, episode.text))
        episode.text = None

    def _play(self, episode: _Episode, completion: Completion) -> bool:
        """Execute a reply and record the turn; return whether the episode continues."""
        trajectory, number = episode.trajectory, len(episode.trajectory.turns)
        if not math.isfinite(sum(completion.logprobs)):
            raise TrainingError(
                f"{trajectory.name} turn {number}: the engine's log-probabilities are not finite"
            )
        action = self._conversation.command(completion.token_ids)
        # Continuations need no fingerprints, because only their return is used.
        state, commands = episode.env.situation() if episode.start.before is None else ("", "")
        start = len(trajectory.token_ids)
        trajectory.token_ids.extend(completion.token_ids)
        step = episode.env.step(action)
        reward, progress = check_step(episode.env, step, trajectory.task, number)
        trajectory.turns.append(
            Turn(
                observation=episode.observation.text,
                action=action,
                span=(start, len(trajectory.token_ids)),
                env_reward=reward,
                progress=progress,
                admissible=bool(step.info["admissible"]),
                overlong=completion.overlong,
                token_ids=completion.token_ids,
                logprobs=completion.logprobs,
                state=state,
                commands=commands,
                embedding=completion.embedding,
            )
        )
        trajectory.success = bool(step.success)
        episode.observation = step.observation
        if step.done:
            return False
        # A truncated reply has no closing token. Append one outside of the reply's span, because
        # the policy did not sample it.
        answer = [self._conversation.end_id] if completion.overlong else []
        answer += self._conversation.observation(step.observation.text)
        if len(trajectory.turns) >= episode.start.last_turn:
            trajectory.truncated, trajectory.unread = True, answer
            return False
        trajectory.token_ids.extend(answer)
        if len(trajectory.token_ids) + self._max_reply_tokens > self.engine.max_length:
            trajectory.truncated = trajectory.context_overflow = True
            return False
        return True


def check_group(env: TextEnv, group: Sequence[Trajectory]) -> None:
    """Raise UserError if two episodes had different results after the same actions."""
    known: dict[tuple[str, ...], tuple] = {}
    for trajectory in group:
        actions = [turn.action for turn in trajectory.turns]
        for number, turn in enumerate(trajectory.turns):
            for what, end, answer in (
                ("observation", number, (trajectory.goal, turn.observation)),
                ("reward", number + 1, (turn.env_reward, turn.progress, turn.admissible)),
            ):
                before = known.setdefault((what, *actions[:end]), answer)
                if before != answer:
                    where = f"task {trajectory.task.task_id} turn {number}: {what} {answer!r:.200}"
                    mistake = f"{where}, but {before!r:.200} after equal actions in another episode"
                    raise wrong(env, "step" if end else "reset", mistake)


def check_progress(trajectory: Trajectory) -> None:
    """Raise UserError unless the trajectory's progress sums to a value in [-1, 1].

    Progress is the change of a potential between 0 and 1.
    """
    total = sum(turn.progress for turn in trajectory.turns)
    if not abs(total) <= 1 + 1e-6:
        raise UserError(
            f"task {trajectory.task.task_id}: progress sums to {total:g}; the sum must be in "
            "[-1, 1], because progress is the change of a potential between 0 and 1"
        )
