"""What one episode leaves behind: the turns, the exact tokens, the behaviour log-probs."""

from dataclasses import dataclass, field

import numpy as np

from hgrpo.envs.base import Task


@dataclass
class Turn:
    """One observation and the reply to it.

    `span` is [start, end) of the sampled reply in the trajectory's `token_ids`; `credit` and
    `advantage` stay None until an assigner and the trainer have seen the trajectory. `state` is
    what the agent can know of the situation it acted in (place, things held and moved) and
    `commands` a hash of the commands it could have given; both equal where situations are, and
    empty where nobody asked. `embedding` is the engine's of that name, where it was asked for one,
    and `target` a verdict of the turn that a learnt assigner is taught.
    """

    observation: str
    action: str
    span: tuple[int, int]
    env_reward: float
    progress: float
    admissible: bool
    overlong: bool
    state: str = ""
    commands: str = ""
    embedding: np.ndarray | None = None
    target: float | None = None
    credit: float | None = None
    advantage: float | None = None


@dataclass(frozen=True)
class Situation:
    """What the agent saw last, with the fingerprints that a turn there would have."""

    observation: str
    state: str
    commands: str


@dataclass
class Trajectory:
    """One rollout of a task as one token sequence.

    Attributes:
        token_ids: the whole conversation, from the opening to the last reply.
        behaviour_logprobs: log-probability, at the sampling temperature, of each sampled token;
            the spans of the turns in order, concatenated.
        truncated: ended by the turn cap or by the context length, not by the environment.
        context_overflow: ended because no further reply would have fitted the context.
        final: the situation after the last turn, None where nobody asked for situations.
    """

    task: Task
    rollout: int
    goal: str = ""
    goal_embedding: np.ndarray | None = None
    token_ids: list[int] = field(default_factory=list)
    behaviour_logprobs: list[float] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    success: bool = False
    truncated: bool = False
    context_overflow: bool = False
    final: Situation | None = None

    @property
    def env_return(self) -> float:
        """Sum of the environment's rewards."""
        return sum(turn.env_reward for turn in self.turns)

    @property
    def inadmissible(self) -> int:
        """Number of replies that were not an admissible command."""
        return sum(not turn.admissible for turn in self.turns)

    @property
    def empty(self) -> int:
        """Number of replies without a command in them."""
        return sum(not turn.action for turn in self.turns)

    @property
    def overlong(self) -> int:
        """Number of replies cut at the token limit."""
        return sum(turn.overlong for turn in self.turns)

    @property
    def action_tokens(self) -> int:
        """Number of sampled tokens."""
        return len(self.behaviour_logprobs)
