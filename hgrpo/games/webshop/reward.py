"""Computes the reward of a purchase, i.e. how well the bought product matches the goal, in [0, 1].

R = r_type * (attribute hits + option hits + price hit) / (goal attributes + goal options + 1), from
Yao et al., "WebShop: Towards Scalable Real-World Web Interaction with Grounded Language Agents"
(2022, https://arxiv.org/abs/2207.01206). Details follow the original code. Two phrases match if
their `token_set_ratio` (0 to 100, from the package thefuzz) exceeds 85.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from thefuzz.fuzz import token_set_ratio

from hgrpo.games.webshop.records import Goal, Item, Product

_FUZZY = 85
_SHARED_CATEGORIES = 2
_CATEGORY_SEPARATOR = "\u203a"
_NO_NOUNS = 0.2
_COLOUR_WORDS = """
    alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze
    brown burgundy camel camo caramel champagne charcoal cheetah chestnut chocolate christmas
    coffee cognac copper coral cranberry cream crystal dark denim eggplant elephant espresso
    fuchsia gold granite grape graphite grass gray green grey heather indigo ivory ivy khaki
    lavender lemon leopard light lilac lime magenta maroon mauve merlot midnight mint mocha
    multicolor mushroom mustard natural navy nude olive orange peach pewter pink plum purple
    rainbow red rose royal rust sand sapphire seashell silver skull slate steel stone
    stonewash sunflower tan taupe teal tiger turquoise violet walnut wheat white wine yellow
"""
COLOURS = _COLOUR_WORDS.split()


@dataclass(frozen=True, slots=True)
class Reward:
    """The reward of a purchase, in [0, 1], and the parts of its formula.

    `r_type` is the factor for the type of the product: 1.0, 0.5, 0.1 or 0.0.
    """

    total: float
    r_type: float
    attribute_hits: int
    option_hits: int
    price_hit: bool


def reward(bought: Item, target: Item, goal: Goal, chosen: Mapping[str, str]) -> Reward:
    """Reward of buying `bought` with the `chosen` options; `target` is the goal's product."""
    score = title_score(bought.nouns, target.nouns)
    kind = type_reward(bought.product, target.product, score)
    attributes = attribute_hits(bought.product, goal.attributes)
    options = option_hits(tuple(chosen.values()), goal.options)
    affordable = bought.price <= goal.price_limit
    parts = len(goal.attributes) + len(goal.options) + 1
    total = (attributes + options + affordable) / parts * kind
    return Reward(total, kind, attributes, options, affordable)


def title_score(bought: Sequence[str], target: Sequence[str]) -> float:
    """Share of the nouns in the target's title that are also in the title of the bought product.

    The numerator counts distinct nouns, and the denominator counts all nouns. If the target's title
    has no nouns, the result is 0.2.
    """
    return len(set(bought) & set(target)) / len(target) if target else _NO_NOUNS


def type_reward(bought: Product, target: Product, score: float) -> float:
    """Return the factor for the product type, given by the first rule that applies:

    - 0.0 if the title score is 0
    - 0.1 if the title score is below 0.1
    - 1.0 if the title score is above 0.2
    - 1.0 if the products have the same search query, or two category names in common
    - 0.5 otherwise
    """
    if score == 0.0:
        return 0.0
    if score < 0.1:
        return 0.1
    alike = (
        bought.query == target.query
        or len(_path(bought) & _path(target)) >= _SHARED_CATEGORIES
        or score > 0.2
    )
    return 1.0 if alike else 0.5


def _path(product: Product) -> set[str]:
    return {part.strip() for part in product.product_category.split(_CATEGORY_SEPARATOR)}


def attribute_hits(bought: Product, phrases: Sequence[str]) -> int:
    """Number of required attributes that match one of the product's attributes or are in its texts.

    The texts are the title, the joined bullet points and the description, all in lower case.
    Required attributes are not converted to lower case.
    """
    written = bought.title, " ".join(bought.bullet_points), bought.description
    texts = [text.lower() for text in written]
    return sum(
        any(token_set_ratio(attribute, phrase) > _FUZZY for attribute in bought.attributes)
        or any(phrase in text for text in texts)
        for phrase in phrases
    )


def option_hits(chosen: Sequence[str], options: Sequence[str | tuple[str, str]]) -> int:
    """Number of required options that match a chosen value after `normalise` is applied to both.

    A chosen value may match several options. If an option is a (name, value) pair, the comparison
    includes the name.
    """
    values = [normalise(value) for value in chosen]
    texts = [normalise(option) for option in options]
    return sum(any(token_set_ratio(value, text) > _FUZZY for value in values) for text in texts)


def normalise(option: str | tuple[str, str]) -> str:
    """Return the first of `COLOURS` in the option or, if it contains none, the text of the option.

    As in the original, "navy blue" becomes "blue". Parts of words also match, so "tanned" becomes
    "tan". A (name, value) pair of a synthetic goal becomes a colour only if its name or its value
    equals a colour. Otherwise, it becomes the string representation of a Python tuple.
    """
    return next((colour for colour in COLOURS if colour in option), str(option))
