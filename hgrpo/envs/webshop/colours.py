"""Colour normalising of option values, as the reward does it.

The first of `COLOURS` that a value contains stands for the whole value: "navy blue" is "blue".
Containment is of letters, not of words, as in the original: "tanned" is "tan".
"""

_WORDS = """
    alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze
    brown burgundy camel camo caramel champagne charcoal cheetah chestnut chocolate christmas
    coffee cognac copper coral cranberry cream crystal dark denim eggplant elephant espresso
    fuchsia gold granite grape graphite grass gray green grey heather indigo ivory ivy khaki
    lavender lemon leopard light lilac lime magenta maroon mauve merlot midnight mint mocha
    multicolor mushroom mustard natural navy nude olive orange peach pewter pink plum purple
    rainbow red rose royal rust sand sapphire seashell silver skull slate steel stone
    stonewash sunflower tan taupe teal tiger turquoise violet walnut wheat white wine yellow
"""
COLOURS = _WORDS.split()


def normalise(value: str) -> str:
    """The first colour contained in a value, or the value where there is none."""
    return next((colour for colour in COLOURS if colour in value), value)


def normalise_pair(pair: tuple[str, str]) -> str:
    """What the original makes of a synthetic goal's option, which it passes as a pair.

    A colour is then looked for among the pair's two entries instead of inside a text, so only a
    value that is a colour and nothing else is normalised; any other pair is matched as the text of
    a Python tuple.
    """
    return next((colour for colour in COLOURS if colour in pair), str(pair))
