"""The conversation as tokens: it only grows, so sampled tokens are never tokenised again."""

import re
from functools import lru_cache
from itertools import pairwise

from tokenizers import Tokenizer

from hgrpo.agent.tokenizer import ACT, END, SPECIALS, START
from hgrpo.errors import UserError


class Conversation:
    """Turns observations into tokens and sampled tokens into commands, in the plain format.

    Format: `<start>` reset text `<act>` reply `</act>` observation `<act>` reply `</act>` ...
    The policy samples each reply with its closing `</act>`. Text that looks like a special token
    stays text, so that no page and no game can close a turn. Instances hold no state of an episode
    and can be shared.
    """

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer = tokenizer
        self.start_id = tokenizer.token_to_id(START)
        self.act_id = tokenizer.token_to_id(ACT)
        self.end_id = tokenizer.token_to_id(END)
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
        self._encode = lru_cache(maxsize=200_000)(self._encode_uncached)
        self._decode = lru_cache(maxsize=200_000)(self._decode_uncached)

    def opening(self, text: str) -> list[int]:
        """Tokens from `<start>`, through the reset text, to the first reply."""
        return [self.start_id, *self._encode(text), self.act_id]

    def observation(self, text: str) -> list[int]:
        """Tokens of an observation, up to the next reply."""
        return [*self._encode(text), self.act_id]

    def reply(self, action: str) -> list[int]:
        """Tokens of an expert's reply, with the closing `</act>`."""
        return [*self._encode(action), self.end_id]

    def command(self, reply: list[int]) -> str:
        """The command in sampled reply tokens: the text before `</act>`, stripped of spaces."""
        end = reply.index(self.end_id) if self.end_id in reply else len(reply)
        return self._decode(tuple(reply[:end])).strip()

    def _encode_uncached(self, text: str) -> tuple[int, ...]:
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        # The tokenizer's own `encode_special_tokens` is not enough: the tiny vocabulary also holds
        # its special tokens as pieces, and encodes a piece of over 1000 characters as padding.
        return tuple(ids) if self._special.isdisjoint(ids) else self._encode_in_parts(text)

    def _encode_in_parts(self, text: str) -> tuple[int, ...]:
        """Cut a text until no part encodes to a special token; it decodes to the same text."""
        cuts = [found.start() + 1 for found in self._looks_special.finditer(text)]
        cuts = [0, *(cuts or [len(text) // 2]), len(text)]
        parts = [text[start:end] for start, end in pairwise(cuts) if start < end]
        if len(parts) == 1:
            raise UserError(
                f"tokenizer.json: the tokenizer makes a special token out of {text!r}, so an "
                "environment could close turns"
            )
        return tuple(number for part in parts for number in self._encode_uncached(part))

    def _decode_uncached(self, ids: tuple[int, ...]) -> str:
        return self.tokenizer.decode(list(ids))
