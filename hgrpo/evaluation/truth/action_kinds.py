"""The kind of an action: its first word, so `go to desk 1` is `go` and `click[red]` is `click`."""

import re
from collections import Counter

import numpy as np

INADMISSIBLE, NO_WORD, OTHER = "(not admissible)", "(no word)", "(other)"
# Further kinds share one name.
KINDS = 12
_LETTERS = re.compile(r"[^\W\d_]+")


def action_kind(action: str, admissible: bool) -> str:
    """The letters that an action begins with, in lower case."""
    if not admissible:
        return INADMISSIBLE
    letters = _LETTERS.match(action.strip().lower())
    return letters.group() if letters else NO_WORD


def common_kinds(kinds: list[str]) -> np.ndarray:
    """The kinds, object [N], with all but the `KINDS` most common ones replaced by `OTHER`."""
    ranked = sorted(Counter(kinds).items(), key=lambda item: (-item[1], item[0]))
    kept = {kind for kind, _ in ranked[:KINDS]}
    return np.array([kind if kind in kept else OTHER for kind in kinds], dtype=object)
