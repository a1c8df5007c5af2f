"""The interface of rollout engines: requests in, completions out."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    import torch

    from hgrpo.policy.load import SavedPolicy
    from hgrpo.policy.policy import Policy


@dataclass(frozen=True)
class Sampling:
    """Sampling parameters. Engines sample from the full distribution, without top-p or top-k.

    Attributes:
        temperature: 0 means greedy decoding, with log-probs recorded at temperature 1.
        max_tokens: maximum number of tokens of a reply, including the closing token.
    """

    temperature: float
    max_tokens: int


@dataclass(frozen=True)
class Request:
    """A request for one reply.

    Attributes:
        conversation: id of the conversation. Its next request must extend this prefix and reply, so
            that the engine can reuse the KV cache.
        prefix: all tokens so far.
        stream: key of the conversation's random stream. The draw of a token depends on this key and
            on its position, not on the rest of the batch.
        text: id of a text held by a `HoldsTexts` engine that begins with `prefix`, or None. Allowed
            only in the first request of a conversation.
    """

    conversation: int
    prefix: list[int]
    stream: int
    text: int | None = None


@dataclass(frozen=True)
class Completion:
    """A finished reply.

    Attributes:
        token_ids: the reply, including the closing token unless the reply was truncated.
        logprobs: log-probability of each token of `token_ids`.
        overlong: whether the reply was truncated at `Sampling.max_tokens`.
        embedding: float32 [hidden size], mean of the last layer's hidden states over the previous
            reply's closing token, the observation, and this reply without its closing token, which
            the engine reads with the next observation. None if the engine does not support
            embeddings or the conversation began with a held text.
    """

    conversation: int
    token_ids: list[int]
    logprobs: list[float]
    overlong: bool
    embedding: np.ndarray | None = None


class RolloutEngine(Protocol):
    """Generates replies for many conversations concurrently.

    Attributes:
        capacity: maximum number of open conversations.
        sampling: sampling parameters; may be changed while no reply is queued.
        max_length: maximum number of tokens of a conversation.
        dtype: dtype of the weights, which limits the agreement with the trainer's log-probs.
        embeddings: whether completions contain embeddings; set at construction. Always False for an
            engine that cannot pool hidden states.
    """

    capacity: int
    sampling: Sampling
    max_length: int
    dtype: "torch.dtype"
    embeddings: bool

    def load_weights(self, policy: "Policy | SavedPolicy") -> None:
        """Load the policy's current weights and close all conversations."""

    def submit(self, request: Request) -> None:
        """Queue a reply.

        Raises:
            RuntimeError: `capacity` conversations are already open. An engine may also reject a
                prefix that leaves no room for a reply or does not extend the conversation.
        """

    def step(self) -> list[Completion]:
        """Advance all queued replies by one token and return the finished ones."""

    def release(self, conversation: int) -> None:
        """Close a conversation and free its cache slot."""

    def sleep(self) -> None:
        """Free memory for the trainer until `load_weights`, if supported.

        Conversations may be lost.
        """


@runtime_checkable
class HoldsTexts(Protocol):
    """An engine in which many conversations can share a prefix of one text.

    The engine computes the text once; a held text takes the slot of one conversation. Engines with
    automatic prefix caching do not need this.
    """

    def hold(self, text: int, tokens: list[int]) -> None:
        """Prefill a text whose prefixes new conversations will share.

        Raises:
            RuntimeError: `capacity` conversations and texts are already open.
        """

    def drop(self, text: int) -> None:
        """Free a text. All conversations that began with it must have been released."""
