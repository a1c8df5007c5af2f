"""Normalises colours in option values, as the reward does.

The first of `COLOURS` that a value contains replaces the whole value: "navy blue" becomes "blue".
As in the original, it may be part of a word: "tanned" becomes "tan".
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


def normalise(option: str | tuple[str, str]) -> str:
    """The first colour that an option contains; the option itself, as text, if there is none.

    The original passes a synthetic goal's option as a (name, value) pair. It then looks for a
    colour among the two entries and not inside a text. So it normalises a value only if it is
    exactly a colour. It matches any other pair as the text of a Python tuple.
    """
    return next((colour for colour in COLOURS if colour in option), str(option))
