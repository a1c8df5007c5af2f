"""The record of one episode, with its turns, exact tokens and behaviour log-probs."""

from dataclasses import dataclass, field

import numpy as np

from hgrpo.games.base import Task


@dataclass
class Turn:
    """One observation and the reply to it.

    Attributes:
        span: range [start, end) of the sampled reply in the trajectory's `token_ids`.
        token_ids: the N sampled tokens of the reply, including the closing token.
        logprobs: N log-probabilities of these tokens at the sampling temperature.
        progress: change of the environment's potential during the turn, see `games.base.Step`.
        overlong: whether the reply was cut at the token limit.
        state: fingerprint of what the agent can know before the turn, e.g. its location and
            inventory. Empty in continuations.
        commands: fingerprint of the admissible commands before the turn. Empty if `state` is empty.
        embedding: float [D], computed from the policy's hidden states by the engine or the credit
            assigner; None if not computed.
        target: counterfactual credit, a training target for fits; None if no continuations were
            played from the turn.
        credit, advantage: None until `learning.batch.group_advantages` sets them. The advantage is
            reset to None if dynamic sampling excludes the group from the update.
    """

    observation: str
    action: str
    span: tuple[int, int]
    env_reward: float
    progress: float
    admissible: bool
    overlong: bool
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    state: str = ""
    commands: str = ""
    embedding: np.ndarray | None = None
    target: float | None = None
    credit: float | None = None
    advantage: float | None = None


@dataclass(frozen=True)
class FinalState:
    """The observation after the last turn, with the fingerprints `state` and `commands`."""

    observation: str
    state: str
    commands: str


@dataclass
class Trajectory:
    """One rollout of a task as one token sequence.

    Attributes:
        token_ids: the whole conversation, from the opening to the last reply. If
            `context_overflow` is true, it also contains the observation after the last reply.
        truncated: whether the turn cap or the context length ended the episode.
        context_overflow: whether the episode ended because the context had no room for a reply.
        unread: if the turn cap ended the episode, the tokens of the last observation, which the
            policy never reads. They follow `token_ids`.
        final: the state after the last turn; None for a continuation.
    """

    task: Task
    rollout: int
    goal: str = ""
    goal_embedding: np.ndarray | None = None
    token_ids: list[int] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    success: bool = False
    truncated: bool = False
    context_overflow: bool = False
    unread: list[int] = field(default_factory=list)
    final: FinalState | None = None

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Range [start, end) of each turn's reply in `token_ids`."""
        return [turn.span for turn in self.turns]

    @property
    def name(self) -> str:
        return f"task {self.task.task_id} rollout {self.rollout}"

    @property
    def env_return(self) -> float:
        return sum(turn.env_reward for turn in self.turns)

    @property
    def inadmissible(self) -> int:
        """Number of replies that are not admissible commands."""
        return sum(not turn.admissible for turn in self.turns)

    @property
    def empty(self) -> int:
        """Number of replies without a command."""
        return sum(not turn.action for turn in self.turns)

    @property
    def overlong(self) -> int:
        """Number of replies truncated at the token limit."""
        return sum(turn.overlong for turn in self.turns)

    @property
    def action_tokens(self) -> int:
        return sum(len(turn.logprobs) for turn in self.turns)
