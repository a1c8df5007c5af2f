"""The reward of a purchase, in [0, 1]: the match between the bought product and the goal.

R = r_type * (attribute hits + option hits + price hit) / (goal attributes + goal options + 1), from
Yao et al., "WebShop: Towards Scalable Real-World Web Interaction with Grounded Language Agents"
(2022, https://arxiv.org/abs/2207.01206). Details follow the original code. Two phrases match if
thefuzz's `token_set_ratio`, an integer percentage, exceeds 85.
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
    """A purchase's reward in [0, 1], and the parts of the formula.

    `r_type` is the factor for the product type: 1.0, 0.5, 0.1 or 0.0.
    """

    total: float
    r_type: float
    attribute_hits: int
    option_hits: int
    price_hit: bool


def reward(bought: Item, target: Item, goal: Goal, chosen: Mapping[str, str]) -> Reward:
    """The reward of buying `bought` with the `chosen` options; the goal was made from `target`."""
    score = title_score(bought.nouns, target.nouns)
    kind = type_reward(bought.product, target.product, score)
    attributes = attribute_hits(bought.product, goal.attributes)
    options = option_hits(tuple(chosen.values()), goal.options)
    affordable = bought.price <= goal.price_limit
    parts = len(goal.attributes) + len(goal.options) + 1
    total = (attributes + options + affordable) / parts * kind
    return Reward(total, kind, attributes, options, affordable)


def title_score(bought: Sequence[str], target: Sequence[str]) -> float:
    """Share of the target title's nouns that occur in the bought title; 0.2 without nouns.

    A repeated noun of the target title counts once in the numerator, but every time in the
    denominator.
    """
    return len(set(bought) & set(target)) / len(target) if target else _NO_NOUNS


def type_reward(bought: Product, target: Product, score: float) -> float:
    """The factor for the product type, by the first matching rule:

    - 0.0 if the title score is 0
    - 0.1 if the title score is below 0.1
    - 1.0 if the title score is above 0.2
    - 1.0 if the products share the search query, or two parts of the category path
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
    """Number of the goal's attributes that match a product attribute or occur in its texts.

    The texts are the lower-case title, joined bullet points and description; the attribute's case
    is unchanged.
    """
    written = bought.title, " ".join(bought.bullet_points), bought.description
    texts = [text.lower() for text in written]
    return sum(
        any(token_set_ratio(attribute, phrase) > _FUZZY for attribute in bought.attributes)
        or any(phrase in text for text in texts)
        for phrase in phrases
    )


def option_hits(chosen: Sequence[str], options: Sequence[str | tuple[str, str]]) -> int:
    """Number of the goal's options that match a chosen value, both after `normalise`.

    A chosen value may match several options. The name in a (name, value) pair is also compared.
    """
    values = [normalise(value) for value in chosen]
    texts = [normalise(option) for option in options]
    return sum(any(token_set_ratio(value, text) > _FUZZY for value in values) for text in texts)


def normalise(option: str | tuple[str, str]) -> str:
    """The first of `COLOURS` contained in an option, or the option as text.

    As in the original, "navy blue" becomes "blue", and parts of words match: "tanned" becomes
    "tan". A (name, value) pair of a synthetic goal contains a colour only if its name or value
    equals it. Other pairs become the string of a Python tuple.
    """
    return next((colour for colour in COLOURS if colour in option), str(option))
