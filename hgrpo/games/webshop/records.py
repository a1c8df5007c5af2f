"""Record types of a shop: products, instructions and goals."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Product:
    """One product in the data files, with texts cleaned as in the original.

    Attributes:
        asin: the product's identifier, at most 10 characters.
        prices: one price in dollars, or both ends of a range in file order.
        query: search query that the data files contain for the product, in lower case.
        product_category: path of categories, joined by " › ".
        options: maps each option name to its values, in lower case and in file order.
        attributes: phrases that can be part of goals; ("DUMMY_ATTR",) if the file has none.
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
        """The price as displayed on pages, such as `$26.44 to $69.99`."""
        return " to ".join(f"${price}" for price in self.prices)

    @property
    def document(self) -> str:
        """The text, in lower case, that the search index contains for this product."""
        choices = ", and ".join(f"{name}: {', '.join(v)}" for name, v in self.options.items())
        first = self.bullet_points[0] if self.bullet_points else ""
        return " ".join((self.title, self.description, first, choices)).lower()


@dataclass(frozen=True, slots=True)
class Instruction:
    """A request for a product, not including a price limit.

    Attributes:
        attributes: phrases that the product must match; at least one.
        options: required values of options; `None` for a synthetic instruction, from which one goal
            is created per combination of the product's option values.
    """

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Item:
    """A product in a shop.

    Attributes:
        row: the product's row in the catalogue.
        price: price in dollars. For a price range, the price is drawn once per catalogue.
        nouns: nouns in the title, in lower case, in order and with repetitions.
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
        options: (name, value) pairs, or only values for a human instruction.
        price_limit: maximum price in dollars, or `NO_LIMIT`.
    """

    row: int
    text: str
    attributes: tuple[str, ...]
    options: tuple[tuple[str, str], ...] | tuple[str, ...]
    price_limit: float


NO_LIMIT = 1_000_000.0
