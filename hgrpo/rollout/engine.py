"""The rollout engine as the collector sees it: requests go in, completions come out."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    import torch

    from hgrpo.policy.load import SavedPolicy
    from hgrpo.policy.policy import Policy


@dataclass(frozen=True)
class Sampling:
    """How replies are drawn. Every engine draws from the whole distribution: no top-p, no top-k.

    Attributes:
        temperature: at 0 the engine takes the most likely token and records that token's log-prob
            at temperature 1.
        max_tokens: longest reply in tokens, with its closing token.
    """

    temperature: float
    max_tokens: int


@dataclass(frozen=True)
class Request:
    """One reply to generate.

    Attributes:
        conversation: id of the conversation. Its next request must extend this one's prefix
            and reply, so that the engine can keep the KV cache.
        prefix: all tokens so far.
        stream: key of the conversation's random stream. The draw of a token depends on this key and
            on positions in the conversation, not on the rest of the batch.
        text: number of a text held by a `HoldsTexts` engine that begins with `prefix`; None: none.
            Only the first request of a conversation may have it.
    """

    conversation: int
    prefix: list[int]
    stream: int
    text: int | None = None


@dataclass(frozen=True)
class Completion:
    """A finished reply.

    Attributes:
        token_ids: the reply, with its closing token unless the reply was cut.
        logprobs: log-probability of each token of `token_ids`.
        overlong: whether the reply was cut at `Sampling.max_tokens`, before its closing token.
        embedding: float32 [hidden size], a mean of the last layer's hidden states. It covers the
            previous reply's closing token, the observation, and this reply without its closing
            token. (The engine reads the closing token with the next observation.) A cut reply has
            no closing token, so all its tokens count. None from an engine without embeddings,
            and in a conversation that began with a held text.
    """

    conversation: int
    token_ids: list[int]
    logprobs: list[float]
    overlong: bool
    embedding: np.ndarray | None = None


class RolloutEngine(Protocol):
    """Generates replies for many conversations at once; returns each reply when it is finished.

    Attributes:
        capacity: number of conversations that may be open at once.
        sampling: how replies are drawn; may be changed while no reply is queued.
        max_length: longest conversation, in tokens.
        dtype: dtype of the weights. It limits how closely log-probs can agree with the trainer's.
        embeddings: whether completions hold embeddings; fixed when the engine is made. False in an
            engine that cannot pool hidden states, even if embeddings are requested.
    """

    capacity: int
    sampling: Sampling
    max_length: int
    dtype: "torch.dtype"
    embeddings: bool

    def load_weights(self, policy: "Policy | SavedPolicy") -> None:
        """Take the policy's present weights and close every conversation."""

    def submit(self, request: Request) -> None:
        """Queue a reply.

        Raises:
            RuntimeError: `capacity` conversations are open already. An engine may also refuse a
                prefix that leaves no room for a reply or does not extend the conversation.
        """

    def step(self) -> list[Completion]:
        """Advance every queued reply by one token and return the replies that finished."""

    def release(self, conversation: int) -> None:
        """Forget a conversation, so that its place in the cache can be used again."""

    def sleep(self) -> None:
        """Free memory for the trainer until `load_weights`, if the engine can.

        Conversations may be forgotten.
        """


@runtime_checkable
class HoldsTexts(Protocol):
    """An engine in which many conversations can share the beginning of one text.

    The engine computes the text once. A held text takes the place of one conversation. An engine
    that finds equal prefixes by itself does not need it.
    """

    def hold(self, text: int, tokens: list[int]) -> None:
        """Read a text whose beginnings new conversations will share.

        Raises:
            RuntimeError: `capacity` conversations and texts are open already.
        """

    def drop(self, text: int) -> None:
        """Forget a text. All conversations that began with it have been released."""
