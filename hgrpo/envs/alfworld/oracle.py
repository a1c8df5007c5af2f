"""Makes the official engine fast enough for comparisons, by caching.

It caches parsed grammar texts, parsed queries and translated PDDL. It copies grammar symbols
shallowly instead of deeply. `parity` compares the result with the untouched engine on a
sample.
"""

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from unittest.mock import patch

from hgrpo.envs.alfworld.textworld_engine import require_textworld


@contextmanager
def memoised() -> Iterator[None]:
    """Inside this block, the official engines of this process cache parses and translations."""
    require_textworld()
    import fast_downward
    from textworld.envs.pddl import logic, textgen
    from textworld.logic import Rule

    parse_symbols = lru_cache(maxsize=4096)(textgen._parse_and_convert)
    parse_logic = lru_cache(maxsize=8)(logic._parse_and_convert)
    parse_query = lru_cache(maxsize=4096)(Rule.parse_conjunctive_query)
    translate = lru_cache(maxsize=4)(fast_downward.pddl2sas)

    def fresh_symbols(text: str, rule_name: str = "symbols", trace: bool = False) -> list:
        return _shallow(parse_symbols(text, rule_name=rule_name))

    patches = [
        (textgen, "_parse_and_convert", fresh_symbols),
        (textgen, "deepcopy", _shallow),
        (logic, "_parse_and_convert", parse_logic),
        (Rule, "parse_conjunctive_query", parse_query),
        (fast_downward, "pddl2sas", translate),
    ]
    with ExitStack() as patched:
        for owner, name, replacement in patches:
            patched.enter_context(patch.object(owner, name, replacement))
        yield


def _shallow(value: object) -> object:
    if isinstance(value, list):
        return [_shallow(item) for item in value]
    if isinstance(value, dict):
        return dict(value)
    copied = copy.copy(value)
    for part in ("symbol", "expression"):
        inner = copied.__dict__.get(part)
        if hasattr(inner, "context"):
            setattr(copied, part, _shallow(inner))
    return copied
