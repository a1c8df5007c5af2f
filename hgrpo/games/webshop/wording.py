"""Writes the texts of a generated shop: product descriptions and shoppers' requests."""

from collections.abc import Sequence
from dataclasses import dataclass

from hgrpo.games.webshop.departments import DEPARTMENTS, ProductType
from hgrpo.games.webshop.draws import Draws

# Number of attributes in the title -> title templates.
_TITLES = {
    1: ("{brand} {first} {type}", "{brand} {type}, {first}", "{first} {type} by {brand}"),
    2: (
        "{brand} {first} {type}, {second}",
        "{brand} {type}, {first}, {second}",
        "{brand} {first} and {second} {type}",
    ),
}
_POINTS = (
    *("{attribute} for {use}", "{attribute} by design", "{attribute} and well made"),
    *("made to be {attribute}", "known to be {attribute}", "always {attribute}"),
)
_FILLERS = (
    *("good for {use}", "a gift for friends", "comes in a plain box", "one year of support"),
    *("ships in two days", "simple to use", "liked by many homes"),
)
_OPENINGS = (
    "{a_first} {type} for {use}.",
    "This {type} is {first}.",
    "Our {first} {type}.",
    "{a_type} for {use}, {first}.",
)
_CLOSINGS = ("", "", "Made for {use}.", "Great for {use}.", "A good pick for {use}.")

# Templates of synthetic instructions (`INSTRUCTIONS`) and of human-style ones (`WISHES`). They have
# no full stop, because a price limit and, for synthetic instructions, the options are appended.
INSTRUCTIONS = (
    "Find me {commas} {types}",
    "Find me {a_type} that is {ands}",
    "find {a_commas} {type}",
    "i am looking for {a_type} that is {ands}",
    "i am looking for {a_commas} {type}",
    "i am looking for {types} that are {ands}",
    "i need {a_type} that is {ands}",
    "i need {a_commas} {type}",
    "i want {a_commas} {type}",
    "i want to buy {types} that are {ands}",
    "show me {commas} {types}",
    "get me {a_type} that is {ands}",
    "please find {a_commas} {type}",
    "search for {types} that are {ands}",
)
WISHES = (
    "hi, i need {a_type}{option} that is {ands}",
    "do you have any {commas} {types}{option}",
    "my old {type} broke, so i want {a_commas} one{option}",
    "i would love {a_commas} {type}{option}",
    "could you help me find {types}{option} that are {ands}",
    "looking for a gift, maybe {a_commas} {type}{option}",
    "my sister wants {a_type}{option}, and it must be {ands}",
    "what i need is {a_commas} {type}{option}",
)
_IN_WORDS = {
    "color": "in {}",
    "size": "in size {}",
    "flavor name": "with {} flavor",
    "scent": "with {} scent",
    "material": "made of {}",
    "style": "in {} style",
    "pack": "sold as {}",
}


@dataclass(frozen=True, slots=True)
class Draft:
    """A product before its texts are written. `prices` is one price or both ends of a range."""

    department: str
    type: ProductType
    brand: str
    attributes: tuple[str, ...]
    options: dict[str, tuple[str, ...]]
    prices: tuple[float, ...]


def listing(draft: Draft, draws: Draws) -> dict:
    """Create a product's texts, with the keys of the official file.

    The title has 5 to 8 words and contains one or two of the attributes. The description has one or
    two sentences. There are 3 to 5 bullet points of 3 to 5 words each. Most of the other attributes
    are mentioned in a bullet point or in the description. The texts mention only attributes that
    the product has.
    """
    order = draws.some(draft.attributes, len(draft.attributes))
    named = min(len(order), draws.between((1, 2)))
    # Attributes that are not in the title come first; those in the title may be repeated.
    news = order[named:] + order[:named]
    uses = DEPARTMENTS[draft.department].uses
    return {
        "name": _title(draft, order[:named], draws),
        "full_description": _description(draft.type.name, news[0], uses, draws),
        "small_description": _bullet_points(news[1:] + news[:1], uses, draws),
    }


def _title(draft: Draft, named: list[str], draws: Draws) -> str:
    template = draws.pick(_TITLES[len(named)])
    phrases = dict(zip(("first", "second"), (name.title() for name in named), strict=False))
    return template.format(brand=draft.brand, type=draft.type.name.title(), **phrases)


def _description(name: str, attribute: str, uses: tuple[str, ...], draws: Draws) -> str:
    here, there = draws.some(uses, 2)
    opening = draws.pick(_OPENINGS).format(
        a_first=_article(attribute), first=attribute, a_type=_article(name), type=name, use=here
    )
    return f"{_upper_first(opening)} {draws.pick(_CLOSINGS).format(use=there)}".strip()


def _bullet_points(attributes: list[str], uses: tuple[str, ...], draws: Draws) -> list[str]:
    count = draws.between((3, 5))
    # At least one bullet point mentions no attribute.
    head, rest = attributes[: count - 1], max(1, count - len(attributes))
    lines = [draws.pick(_POINTS).format(attribute=a, use=draws.pick(uses)) for a in head]
    lines += [line.format(use=draws.pick(uses)) for line in draws.some(_FILLERS, rest)]
    return [_upper_first(line) for line in draws.some(lines, count)]


def request(
    sentences: Sequence[str],
    kind: ProductType,
    attributes: list[str],
    draws: Draws,
    option: tuple[str, str] | None = None,
) -> str:
    """Fill in a random template. `option`, a (name, value) pair, is used only by `WISHES`."""
    commas = ", ".join(attributes)
    *before, last = attributes
    return draws.pick(sentences).format(
        type=kind.name,
        types=kind.plural,
        a_type=_article(kind.name),
        commas=commas,
        a_commas=_article(commas),
        ands=f"{', '.join(before)} and {last}" if before else last,
        option=f" {_IN_WORDS[option[0]].format(option[1])}" if option else "",
    )


def _article(phrase: str) -> str:
    # "uv resistant" is the only phrase that begins with a vowel but takes "a".
    return f"{'an' if phrase[0] in 'aeiou' and not phrase.startswith('uv ') else 'a'} {phrase}"


def _upper_first(line: str) -> str:
    return line[0].upper() + line[1:]
