"""Normalises colours in option values, as the reward does.

The first of `COLOURS` that a value contains replaces the whole value: "navy blue" becomes "blue".
As in the original, a part of a word counts: "tanned" becomes "tan".
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
    """The first colour that an option contains; if it contains none, the option as text.

    Like the original, this takes a synthetic goal's option as a (name, value) pair. A pair contains
    a colour only if its name or value is exactly that colour. Any other pair becomes the text of a
    Python tuple.
    """
    return next((colour for colour in COLOURS if colour in option), str(option))
