"""Which conversation a base model is made for: this project's plain layout, or its own chat."""

from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.agent.conversation import Conversation
from hgrpo.agent.tokenizer import ACT, END, START, load_tokenizer
from hgrpo.errors import UserError

if TYPE_CHECKING:
    from hgrpo.agent.chat import ChatConversation


def conversation_for(base: Path, system: str | None = None) -> "Conversation | ChatConversation":
    """The plain layout where the tokenizer has its tokens, else the model's chat template.

    Args:
        base: folder of the base model.
        system: text of the system message; None leaves it to the template.

    Raises:
        UserError: naming the file: no tokenizer, no chat template or one that does more than
            append, or a system text for the plain layout, which has none.
    """
    tokenizer = load_tokenizer(base)
    if any(tokenizer.token_to_id(token) is None for token in (START, ACT, END)):
        # Importing the template engine takes time that the plain layout has no use for.
        from hgrpo.agent.chat import ChatConversation
        from hgrpo.agent.template import ChatTemplate

        return ChatConversation(tokenizer, ChatTemplate(base), system)
    if system is not None:
        raise UserError(f"system: {base} has this project's plain layout, without system messages")
    return Conversation(tokenizer)
