"""Names shown to the player, from the mangled ids of ALFRED's problems.

`mug_bar__minus_00_dot_84_bar_...` becomes `mug 2`: ids are taken in sorted order and numbered
downwards within their kind. Ids without coordinates keep their name and a trailing space, and an
id that contains `basin` gets that word appended to its kind, as the official names have it.
"""

from collections import Counter
from collections.abc import Iterable

_SYMBOLS = (
    ("_bar_", "|"),
    ("_minus_", "-"),
    ("_plus_", "+"),
    ("_dot_", "."),
    ("_comma_", ","),
)


def shown_names(ids: Iterable[str]) -> dict[str, str]:
    """Map every id to its shown name; the numbering depends on the whole set of ids."""
    kinds: dict[str, str | None] = {}
    left: Counter[str] = Counter()
    for name in sorted(ids):
        kind, bar, _ = name.partition("_bar_")
        if not bar:
            kinds[name] = None
            continue
        kinds[name] = kind + "basin" if "basin" in name else kind
        left[kinds[name]] += 1
    words = {kind: _plain(kind) for kind in left}
    shown: dict[str, str] = {}
    for name, kind in kinds.items():
        if kind is None:
            shown[name] = _plain(name) + " "
        else:
            shown[name] = f"{words[kind]} {left[kind]}"
            left[kind] -= 1
    return shown


def _plain(text: str) -> str:
    for mangled, symbol in _SYMBOLS:
        text = text.replace(mangled, symbol)
    return text
