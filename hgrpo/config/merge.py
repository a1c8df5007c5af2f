"""Merge changes into a mapping read from a config file."""

import copy
from collections.abc import Mapping


def merge(base: Mapping[str, object], changes: Mapping[str, object]) -> dict:
    """A copy of `base` with `changes`: sections are merged key by key, other values replaced."""
    merged = copy.deepcopy(dict(base))
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            value = merge(merged[key], value)
        merged[key] = value
    return merged
