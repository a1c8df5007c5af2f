"""Choosing how a base model holds a conversation: in the plain format, or by its chat template."""

from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.agent.conversation import Conversation
from hgrpo.agent.tokenizer import ACT, END, START, load_tokenizer
from hgrpo.errors import UserError

if TYPE_CHECKING:
    from hgrpo.agent.chat import ChatConversation


def conversation_for(base: Path, system: str | None = None) -> "Conversation | ChatConversation":
    """The plain format if the tokenizer has its special tokens; otherwise the chat template.

    `system` is the text of the system message; None leaves it to the template.

    Raises:
        UserError: there is no tokenizer, no chat template, or one that does more than append; or a
            system text is given and the plain format has no place for it. The message names the
            file.
    """
    tokenizer = load_tokenizer(base)
    if any(tokenizer.token_to_id(token) is None for token in (START, ACT, END)):
        # Importing the template engine takes time, and the plain format does not need it.
        from hgrpo.agent.chat import ChatConversation
        from hgrpo.agent.template import ChatTemplate

        return ChatConversation(tokenizer, ChatTemplate(base), system)
    if system is not None:
        raise UserError(f"system: {base} has this project's plain format, without system messages")
    return Conversation(tokenizer)
