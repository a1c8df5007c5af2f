"""The records of a shop: products, instructions and goals."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Product:
    """One product of the shop, with texts cleaned as in the original.

    Attributes:
        asin: the product's identifier, at most 10 characters.
        prices: one price in dollars, or both ends of a range in file order.
        query: the data set's search query for the product, in lower case.
        product_category: path of categories, joined by " › ".
        options: option name -> values, all in lower case, in file order.
        attributes: phrases used in goals; ("DUMMY_ATTR",) if the file has none.
    """

    asin: str
    title: str
    description: str
    bullet_points: tuple[str, ...]
    prices: tuple[float, ...]
    category: str
    query: str
    product_category: str
    options: dict[str, tuple[str, ...]]
    attributes: tuple[str, ...]

    @property
    def price_tag(self) -> str:
        """The displayed price, such as `$26.44 to $69.99`."""
        return " to ".join(f"${price}" for price in self.prices)

    @property
    def document(self) -> str:
        """The indexed text, in lower case."""
        choices = ", and ".join(f"{name}: {', '.join(v)}" for name, v in self.options.items())
        first = self.bullet_points[0] if self.bullet_points else ""
        return " ".join((self.title, self.description, first, choices)).lower()


@dataclass(frozen=True, slots=True)
class Instruction:
    """A request for a product, without price limit.

    Attributes:
        attributes: one or more required phrases.
        options: required option values. None for a synthetic instruction, which yields one goal per
            combination of the product's option values.
    """

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Item:
    """A product in a shop.

    Attributes:
        row: the product's row in the catalogue.
        price: dollars; drawn once for the catalogue if the product has a price range.
        nouns: lower-case nouns of the title, in order, with repetitions.
    """

    row: int
    product: Product
    price: float
    nouns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Goal:
    """The goal of a session: an instruction with options and price limit.

    Attributes:
        row: catalogue row of the goal's product.
        options: (name, value) pairs of a synthetic goal, bare values of a human one.
        price_limit: dollars, or `NO_LIMIT`.
    """

    row: int
    text: str
    attributes: tuple[str, ...]
    options: tuple[tuple[str, str], ...] | tuple[str, ...]
    price_limit: float


NO_LIMIT = 1_000_000.0
