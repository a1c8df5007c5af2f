"""The conversation as tokens: it only grows, so nothing that was sampled is tokenised again."""

from functools import lru_cache

from tokenizers import Tokenizer

from hgrpo.agent.tokenizer import ACT, END, START


class Conversation:
    """Renders observations to tokens and replies to commands, for models with the plain layout.

    Layout: `<start>` reset text `<act>` reply `</act>` observation `<act>` reply `</act>` ...
    The reply, with its closing `</act>`, is what the policy samples. Instances hold no state of
    an episode and can be shared.
    """

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer = tokenizer
        self.start_id = tokenizer.token_to_id(START)
        self.act_id = tokenizer.token_to_id(ACT)
        self.end_id = tokenizer.token_to_id(END)
        self._encode = lru_cache(maxsize=200_000)(self._encode_uncached)
        self._decode = lru_cache(maxsize=200_000)(self._decode_uncached)

    def opening(self, text: str) -> list[int]:
        """Tokens of the reset text, up to where the first reply begins."""
        return [self.start_id, *self._encode(text), self.act_id]

    def observation(self, text: str) -> list[int]:
        """Tokens of an observation, up to where the next reply begins."""
        return [*self._encode(text), self.act_id]

    def reply(self, action: str) -> list[int]:
        """Tokens of a reply as an expert would give it, closing token included."""
        return [*self._encode(action), self.end_id]

    def command(self, reply: list[int]) -> str:
        """The command in sampled reply tokens: the text before `</act>`, stripped of spaces."""
        end = reply.index(self.end_id) if self.end_id in reply else len(reply)
        return self._decode(tuple(reply[:end])).strip()

    def _encode_uncached(self, text: str) -> tuple[int, ...]:
        return tuple(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def _decode_uncached(self, ids: tuple[int, ...]) -> str:
        return self.tokenizer.decode(list(ids))
