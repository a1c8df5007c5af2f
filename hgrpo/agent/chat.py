"""Tokenises conversations with the chat template of the model."""

import re

from tokenizers import AddedToken, Tokenizer

from hgrpo.agent.conversation import Replies
from hgrpo.agent.template import ChatTemplate, Pieces, first_difference, together
from hgrpo.errors import UserError

# A conversation for a check. Tokenising it as a whole or turn by turn must give equal tokens.
_TRIAL = (
    ("\n a hall ", "a door 12\n\n", "  the coin's"),
    ("go to door 1", "open door 12", "think: it's there"),
)


class ChatConversation(Replies):
    """A `Conversation` for chat models. The environment is the user and the policy the assistant.

    The template's special tokens are inserted by id. Messages are tokenised together with the
    adjacent plain text of the template. Each reply ends with a special token; the template text
    after it belongs to the next observation. The constructor modifies `tokenizer` so that special
    tokens in text are encoded as plain text. If `system` is None, the template chooses the system
    message.

    Raises:
        UserError: the template rewrites earlier messages, or does not end replies with a special
            token; tokenising a trial conversation turn by turn and as a whole gives different
            tokens; plain text encodes to a special token; or `system` contains a special token.
    """

    def __init__(self, tokenizer: Tokenizer, template: ChatTemplate, system: str | None = None):
        self._file = template.path.with_name("tokenizer.json")
        self._pieces = template.pieces(system)
        self._controls = _controls(tokenizer, template, self._pieces)
        self._special = frozenset(self._controls.values())
        for token in self._controls:
            if token in (system or ""):
                raise UserError(f"system: remove {token}, a special token of {self._file}")
        # Match the longest token first, because a special token may be a prefix of another one.
        names = sorted(self._controls, key=len, reverse=True)
        self._control = re.compile(f"({'|'.join(map(re.escape, names))})" if names else "(?!)()")
        closing = self._control.match(self._pieces.answer)
        if not closing or not self._pieces.tail.startswith(closing[0]):
            raise UserError(
                f"{template.path}: the template puts {self._pieces.answer!r} after a reply and "
                f"{self._pieces.tail!r} after the last reply; both texts must begin with the same "
                f"special token{template.help}"
            )
        super().__init__(tokenizer, self._controls[closing[0]])
        self._after = self._pieces.answer[closing.end() :]
        # Some tokenizer files contain truncation and padding settings from pretraining.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        whole = tokenizer.encode(together(self._pieces, *_TRIAL), add_special_tokens=False).ids
        tokenizer.add_special_tokens([AddedToken(name, special=True) for name in names])
        tokenizer.encode_special_tokens = True
        self._check(whole, self._pieces.tail[closing.end() :])

    def opening(self, text: str) -> list[int]:
        """Tokens before the first reply; `text` is the first observation."""
        return self._tokens(*self._pieces.head, text, self._pieces.ask)

    def observation(self, text: str) -> list[int]:
        """Tokens between a reply's closing token and the next reply, including the observation."""
        return self._tokens(self._after, text, self._pieces.ask)

    def _tokens(self, *parts: str) -> list[int]:
        ids: list[int] = []
        plain = ""
        for index, part in enumerate(parts):
            if index % 2:
                plain += part
                continue
            text, *controls_and_texts = self._control.split(part)
            plain += text
            for control, text in zip(*[iter(controls_and_texts)] * 2, strict=True):
                ids += [*self._encode(plain), self._controls[control]]
                plain = text
        return [*ids, *self._encode(plain)]

    def _encode_uncached(self, text: str) -> tuple[int, ...]:
        ids = tuple(self.tokenizer.encode(text, add_special_tokens=False).ids)
        if not self._special.isdisjoint(ids):
            control = next(token for token, special in self._controls.items() if special in ids)
            raise UserError(
                f"{self._file}: the tokenizer encodes plain text as the special token {control}, "
                "so text in an observation could end a turn"
            )
        return ids

    def _check(self, whole: list[int], rest: str) -> None:
        """Raise UserError unless tokenising `_TRIAL` turn by turn gives the tokens `whole`."""
        for token in self._controls:
            self._encode_uncached(token)
        observations, replies = _TRIAL
        turns = [self.opening(observations[0]), *map(self.observation, observations[1:])]
        ids: list[int] = []
        for turn, reply in zip(turns, replies, strict=True):
            ids += [*turn, *self.reply(reply)]
        ids += self._tokens(rest)
        if ids != whole:
            at = first_difference(whole, ids)
            one, other = (
                [self.tokenizer.id_to_token(i) for i in p[at : at + 3]] for p in (whole, ids)
            )
            raise UserError(
                f"{self._file}: tokenising a conversation as a whole and turn by turn gives "
                f"different tokens: {one} and {other} after {at} tokens; see docs/models.md, "
                "Tokenizers that are refused"
            )


def _controls(tokenizer: Tokenizer, template: ChatTemplate, pieces: Pieces) -> dict[str, int]:
    """Map each special token, and each added token that occurs in the template, to its id.

    Messages must not contain these tokens. White-space tokens that are not special are allowed.
    """
    written = [*template.literals, *pieces.head[::2], pieces.ask, pieces.answer, pieces.tail]
    controls = {}
    for special, token in tokenizer.get_added_tokens_decoder().items():
        named = not token.content.isspace() and any(token.content in text for text in written)
        if token.special or named:
            controls[token.content] = special
    return controls
