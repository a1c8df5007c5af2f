"""What the collector asks of a rollout engine."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    import torch

    from hgrpo.policy.load import SavedPolicy
    from hgrpo.policy.policy import Policy


@dataclass(frozen=True)
class Sampling:
    """How replies are drawn, the same in every engine: no top-p, no top-k.

    Attributes:
        temperature: 0 is greedy; recorded log-probs are then those at temperature 1.
        max_tokens: longest reply, closing token included.
    """

    temperature: float
    max_tokens: int


@dataclass(frozen=True)
class Request:
    """One reply to generate.

    Attributes:
        conversation: name of the conversation; the next request of the same conversation must
            extend this one's prefix and reply, so that its KV cache can be kept.
        prefix: all tokens so far.
        stream: key of the conversation's random stream; the token at position p of the sequence
            is drawn with element p of it, whatever shares the batch.
    """

    conversation: int
    prefix: list[int]
    stream: int


@dataclass(frozen=True)
class Completion:
    """A finished reply.

    Attributes:
        overlong: it was cut before its closing token.
        embedding: float32 [hidden size], the mean of the last layer's hidden states over the
            tokens read since the last reply: its closing token, the observation, and this reply up
            to its closing token, which is read with the next observation; a reply without one is
            read to its end. None unless asked for.
    """

    conversation: int
    token_ids: list[int]
    logprobs: list[float]
    overlong: bool
    embedding: np.ndarray | None = None


class RolloutEngine(Protocol):
    """Generates replies for many conversations at once; replies come back as they finish.

    Attributes:
        capacity: conversations that may be open at once.
        sampling: how replies are drawn; it may be changed while none is queued.
        max_length: longest conversation, in tokens.
        dtype: type of the weights, which says how closely log-probs can agree with the trainer's.
    """

    capacity: int
    sampling: Sampling
    max_length: int
    dtype: "torch.dtype"

    def load_weights(self, policy: "Policy | SavedPolicy") -> None:
        """Use the policy's present weights; forgets every conversation."""
        ...

    def submit(self, request: Request) -> None:
        """Queue a reply; at most `capacity` conversations may be open."""
        ...

    def step(self) -> list[Completion]:
        """Advance every queued reply by a token and return those that finished."""
        ...

    def release(self, conversation: int) -> None:
        """Forget a conversation and free its cache."""
        ...

    def sleep(self) -> None:
        """Leave memory to the trainer until `load_weights`; forgets every conversation."""
        ...
