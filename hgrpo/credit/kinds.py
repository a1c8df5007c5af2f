"""Credit assigners by name: each is one module of this package, found by its file name.

A module has `make(settings, context)`, which returns a `CreditAssigner`, and, where it takes
settings, a `Settings` model of them. Where its credit makes sense under one value of a method's
key alone, `DEMANDS` says so: key -> (value, why). Importing it must not import torch: reading a
study does.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from types import ModuleType

from pydantic import BaseModel

import hgrpo.credit
from hgrpo.config.read import did_you_mean
from hgrpo.credit.settings import NoSettings

_SHARED = {"base", "kinds", "make", "section", "settings"}


def known() -> list[str]:
    """Names of all assigners."""
    found = pkgutil.iter_modules(hgrpo.credit.__path__)
    return sorted(module.name for module in found if module.name not in _SHARED)


def module_name(kind: str) -> str:
    """Dotted name of the module of an assigner; what it imports is part of a round's code."""
    return f"hgrpo.credit.{kind}"


def load(kind: str) -> ModuleType:
    """The module of an assigner.

    Raises:
        ValueError: there is none of that name.
    """
    if kind not in known():
        raise ValueError(f"kind: no credit assigner {kind!r}{did_you_mean(str(kind), known())}")
    return importlib.import_module(module_name(kind))


def settings_of(kind: str) -> type[BaseModel]:
    """The model of an assigner's settings; raises ValueError for an unknown kind."""
    return getattr(load(kind), "Settings", NoSettings)


def demands_of(kind: str) -> Mapping[str, tuple[object, str]]:
    """What an assigner asks of its method: key -> (value, why); ValueError as `load`."""
    return getattr(load(kind), "DEMANDS", {})
