"""How the tiny model's tokenizer cuts an environment's text into pieces."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cut:
    """Patterns whose matches are the candidates for the tokenizer's vocabulary.

    Attributes:
        name: the name of this cut in the setting `tiny.cut`.
        pieces: regular expression. Every character of a text must be in a match.
        lowercase: whether text is lowercased first, in training and in use.
        goal_mark: the text after which an opening states the goal; "" if goals are cut like all
            other text.
        goal_pieces: regular expression that cuts goals when the vocabulary is made. Without it, a
            `pieces` that matches whole sentences would make each goal one token.
    """

    name: str
    pieces: str
    lowercase: bool = False
    goal_mark: str = ""
    goal_pieces: str = ""


# Words, whole numbers and single characters. A word or a number includes the space before it.
PLAIN = Cut("plain", r" ?[A-Za-z']+| ?[0-9]+|.|\n")
