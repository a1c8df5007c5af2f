"""Conversations as append-only token sequences; sampled tokens are never re-tokenised."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from tokenizers import Tokenizer

from hgrpo.agent.tokenizer import ACT, END, SPECIALS, START, load_tokenizer
from hgrpo.errors import UserError

if TYPE_CHECKING:
    from hgrpo.agent.chat import ChatConversation


class Replies(ABC):
    """Base class of conversations; encodes and decodes the policy's replies.

    The policy samples each reply including `end_id`, the token that closes it. Text that looks like
    a special token is encoded as plain text, so that environment text cannot end a turn. Instances
    hold no episode state and can be shared.
    """

    def __init__(self, tokenizer: Tokenizer, end_id: int):
        self.tokenizer = tokenizer
        self.end_id = end_id
        self._encode = lru_cache(maxsize=200_000)(self._encode_uncached)
        self._decode = lru_cache(maxsize=200_000)(lambda ids: tokenizer.decode(list(ids)))

    def reply(self, action: str) -> list[int]:
        """Encode a reply that is given as text, e.g. by an expert, and append the closing token."""
        return [*self._encode(action), self.end_id]

    def command(self, reply: list[int]) -> str:
        """The command in a sampled reply: the text before the closing token, stripped."""
        end = reply.index(self.end_id) if self.end_id in reply else len(reply)
        return self._decode(tuple(reply[:end])).strip()

    def written(self, ids: Sequence[int]) -> str:
        """Decode tokens verbatim, including special tokens."""
        return self.tokenizer.decode(list(ids), skip_special_tokens=False)

    @abstractmethod
    def _encode_uncached(self, text: str) -> tuple[int, ...]:
        """Encode a text without producing special tokens."""


class Conversation(Replies):
    """A conversation in the plain format of tiny models.

    Format: `<start>` observation `<act>` reply `</act>` observation `<act>` reply `</act>` ...
    """

    def __init__(self, tokenizer: Tokenizer):
        super().__init__(tokenizer, tokenizer.token_to_id(END))
        self.start_id = tokenizer.token_to_id(START)
        self.act_id = tokenizer.token_to_id(ACT)
        added = tokenizer.get_added_tokens_decoder().items()
        special = {number: token.content for number, token in added if token.special}
        special |= {
            number: token
            for token in SPECIALS
            if (number := tokenizer.token_to_id(token)) is not None
        }
        self._special = frozenset(special)
        names = sorted(special.values(), key=len, reverse=True)
        self._looks_special = re.compile("|".join(map(re.escape, names)))

    def opening(self, text: str) -> list[int]:
        """Tokens before the first reply: `<start>`, the first observation and `<act>`."""
        return [self.start_id, *self._encode(text), self.act_id]

    def observation(self, text: str) -> list[int]:
        """Tokens between two replies: the observation and `<act>`."""
        return [*self._encode(text), self.act_id]

    def _encode_uncached(self, text: str) -> tuple[int, ...]:
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        # The tokenizer option `encode_special_tokens` is not sufficient: special tokens are also in
        # the WordPiece vocabulary, and a piece longer than 1000 characters becomes `<pad>`.
        return tuple(ids) if self._special.isdisjoint(ids) else self._encode_in_parts(text)

    def _encode_in_parts(self, text: str) -> tuple[int, ...]:
        """Encode a text in parts that are short enough to contain no special token."""
        cuts = [match.start() + 1 for match in self._looks_special.finditer(text)]
        cuts = [0, *(cuts or [len(text) // 2]), len(text)]
        parts = [text[start:end] for start, end in pairwise(cuts) if start < end]
        if len(parts) == 1:
            raise UserError(
                f"tokenizer.json: the tokenizer encodes {text!r} as a special token, so an "
                "environment could end a turn"
            )
        return tuple(number for part in parts for number in self._encode_uncached(part))


def conversation_for(base: Path, system: str | None = None) -> "Conversation | ChatConversation":
    """Return the conversation for a base model.

    It has the plain format if the tokenizer has `<start>`, `<act>` and `</act>`. All other models
    require a chat template. If `system` is None, the template chooses the system message.

    Raises:
        UserError: the tokenizer or chat template is missing or cannot be read, `system` is given
            for the plain format, or `ChatConversation` does not support the model.
    """
    tokenizer = load_tokenizer(base)
    if any(tokenizer.token_to_id(token) is None for token in (START, ACT, END)):
        # Imported here because jinja2 is slow to import and the plain format does not need it.
        from hgrpo.agent.chat import ChatConversation
        from hgrpo.agent.template import ChatTemplate

        return ChatConversation(tokenizer, ChatTemplate(base), system)
    if system is not None:
        raise UserError(f"system: {base} uses the plain format, which has no system messages")
    return Conversation(tokenizer)
