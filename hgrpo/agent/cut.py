"""How the tiny model's tokenizer cuts an environment's text into pieces."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cut:
    """Patterns whose matches are the candidates for the tokenizer's vocabulary.

    Attributes:
        name: what a model's `tiny.cut` calls it.
        pieces: regular expression; every character of a text must be in a match.
        lowercase: whether text is lowered first, in training and in use.
        goal_mark: the text behind which an opening states its goal; "" where goals are cut like
            all other text.
        goal_pieces: regular expression for the text behind `goal_mark`. Where `pieces` match whole
            sentences, every goal would otherwise take a token of its own.
    """

    name: str
    pieces: str
    lowercase: bool = False
    goal_mark: str = ""
    goal_pieces: str = ""


# Words, whole numbers and single marks; a word or number takes the blank before it.
PLAIN = Cut("plain", r" ?[A-Za-z']+| ?[0-9]+|.|\n")
