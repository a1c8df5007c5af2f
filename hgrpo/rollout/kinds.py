"""Finds rollout engines by name. An engine's name is that of its folder in this package."""

import pkgutil

import hgrpo.rollout
from hgrpo.errors import did_you_mean, import_plug_in
from hgrpo.rollout.engine_kind import EngineKind


def known() -> list[str]:
    """Names of all engines."""
    modules = pkgutil.iter_modules(hgrpo.rollout.__path__)
    return sorted(module.name for module in modules if module.ispkg)


def load(kind: str) -> EngineKind:
    """The engine's plug-in.

    Raises:
        ValueError: no engine has that name, or its module cannot be imported.
    """
    if kind not in known():
        raise ValueError(f"kind: no rollout engine {kind!r}{did_you_mean(str(kind), known())}")
    return import_plug_in(f"hgrpo.rollout.{kind}").ENGINE
