"""The interface of rollout engines, and its data classes."""

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
        conversation: id of the conversation. The prefix of its next request must start with this
            prefix and the reply, so that the engine can reuse the KV cache.
        prefix: all tokens of the conversation so far.
        stream: key of the conversation's random stream. The random number for a token depends on
            this key and the token's position, not on the rest of the batch.
        text: id of a text that the engine has cached (see `HoldsTexts`), or None. The text must
            start with `prefix`. Only the first request of a conversation may have a text.
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
            reply's closing token, the observation, and this reply. It does not include this reply's
            closing token, which is processed with the next observation. None if the engine does not
            compute embeddings, or if the conversation started with a cached text.
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
        sampling: sampling parameters. They may be changed while no reply is queued.
        max_length: maximum number of tokens of a conversation.
        dtype: dtype of the weights. It limits how closely log-probs match the trainer's.
        embeddings: whether completions contain embeddings; fixed at construction. Always False for
            an engine that cannot pool hidden states.
    """

    capacity: int
    sampling: Sampling
    max_length: int
    dtype: "torch.dtype"
    embeddings: bool

    def load_weights(self, policy: "Policy | SavedPolicy") -> None:
        """Load the policy's current weights and close all conversations."""

    def submit(self, request: Request) -> None:
        """Queue a request.

        Raises:
            RuntimeError: `capacity` conversations are already open. An engine may also reject a
                prefix that leaves no room for a reply or does not extend the conversation.
        """

    def step(self) -> list[Completion]:
        """Advance all queued replies by one token and return the finished ones."""

    def release(self, conversation: int) -> None:
        """Close a conversation and free its cache slot."""

    def sleep(self) -> None:
        """Free memory until the next `load_weights`, if possible; this may drop conversations."""


@runtime_checkable
class HoldsTexts(Protocol):
    """An engine in which conversations can share the KV cache of a text.

    The engine prefills the text once and keeps its cache. New conversations can start with prefixes
    of the text. A cached text takes the slot of one conversation. Engines with automatic prefix
    caching do not need this protocol.
    """

    def hold(self, text: int, tokens: list[int]) -> None:
        """Prefill a text whose prefixes new conversations will share.

        Raises:
            RuntimeError: there are already `capacity` open conversations and cached texts.
        """

    def drop(self, text: int) -> None:
        """Free a cached text. All conversations that started with it must have been released."""
