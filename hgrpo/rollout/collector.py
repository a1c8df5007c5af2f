"""Plays groups of episodes; a new episode starts as soon as another one ends."""

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
        make_env: makes an environment; called when an episode starts and no environment is idle.
        turn_cap: longest episode, in turns.
        max_reply_tokens: longest reply in tokens, with its closing token.
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
        """The temperature at which the engine samples."""
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
            stream: first parts of the name of each episode's random stream, such as ("train", seed,
                round, step).

        Returns:
            Groups in the order of `tasks`, each with its trajectories by rollout index. What they
            hold does not depend on how many episodes were in flight.

        Raises:
            UserError: a task's first text leaves no room for a reply; see also `check_group`.
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
        """Play an episode from every start; return the trajectories in the order of the starts.

        As many episodes are in flight as the engine has capacity for. A trajectory that several
        starts begin within is played again once, and the engine reads it once if it holds texts;
        starts that begin within the same trajectory should therefore stand together.

        Raises:
            ReplayError: the environment gave another answer when a turn was played again.
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
                # Forks may be many more than are ever in play together.
                if len(self._idle_envs) < self.engine.capacity:
                    self._idle_envs.append(episode.env)
                finished[name] = episode.trajectory
                del playing[name]
                on_done()
        return finished  # type: ignore[return-value]

    def _close(self, episode: _Episode) -> None:
        """Check and complete an episode that began at the reset."""
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
                f"task {start.task.task_id}: {length} tokens before the first reply and "
                f"{self._max_reply_tokens} for the reply exceed the {self.engine.max_length} that "
                "the engine reads: raise max_length of the model or engine.max_length, or "
                "take a model with a longer context"
            )
        return _Episode(env, trajectory, seen, start, text)

    def _ask(self, name: int, episode: _Episode) -> None:
        tokens, stream = episode.trajectory.token_ids, episode.start.stream
        self.engine.submit(Request(name, tokens, stream, episode.text))
        episode.text = None

    def _play(self, episode: _Episode, completion: Completion) -> bool:
        """Act on a reply and record the turn; return whether the episode goes on."""
        trajectory, number = episode.trajectory, len(episode.trajectory.turns)
        if not math.isfinite(sum(completion.logprobs)):
            raise TrainingError(
                f"{trajectory.name} turn {number}: the engine's log-probabilities are not finite"
            )
        action = self._conversation.command(completion.token_ids)
        # Of an episode that begins within another one, only the return is read.
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
        # The policy did not sample the closing token of a cut reply; no span of a reply covers it.
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
    """Raise UserError if the environment answered equal actions of two episodes differently."""
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
                    mistake = f"{where}, but after equal actions of another episode {before!r:.200}"
                    raise wrong(env, "step" if end else "reset", mistake)


def check_progress(trajectory: Trajectory) -> None:
    """Raise UserError unless the progress of all turns sums to a value from -1 to 1.

    Progress is the change of a potential, which lies between 0 and 1.
    """
    total = sum(turn.progress for turn in trajectory.turns)
    if not abs(total) <= 1 + 1e-6:
        raise UserError(
            f"task {trajectory.task.task_id}: progress sums to {total:g}; it is the change of a "
            "potential between 0 and 1"
        )
