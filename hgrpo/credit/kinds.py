"""Registry of credit assigners, and the config section `credit` of a method.

The name of an assigner is the name of its file or folder in this package. Its module must define
    make(settings, context) -> CreditAssigner
and may define
    Settings    a subclass of `CreditSettings` with the assigner's keys and declarations;
    fit(settings, rounds, previous, seed, round, out, show) -> str
                a function that fits a model to the rounds so far, required if `Settings.fits` is
                true. `rounds` are the rounds' folders, in order. `previous` is the folder of an
                earlier fit, or None. `show` is a `Progress`. The function writes model.safetensors,
                model.json and train_log.json ({"rows", "elapsed_s"}) to the folder `out`, and
                returns a one-line summary.
The module must not import torch at the top level, because it is also imported to read a study.
"""

import pkgutil
from types import ModuleType

from pydantic import Field

import hgrpo.credit
from hgrpo.config.kind_section import KindSection
from hgrpo.credit.settings import CreditSettings
from hgrpo.errors import did_you_mean, import_plug_in

_SHARED = {"altered", "base", "kinds", "prompt_states", "replay", "settings", "to_go"}


def known() -> list[str]:
    """Names of all assigners."""
    modules = pkgutil.iter_modules(hgrpo.credit.__path__)
    return sorted(module.name for module in modules if module.name not in _SHARED)


def module_name(kind: str) -> str:
    """Full name of an assigner's module, which is included in the code hash of rounds."""
    return f"hgrpo.credit.{kind}"


def load(kind: str) -> ModuleType:
    """Import and return the module of an assigner.

    Raises:
        ValueError: no assigner has that name, or its module cannot be imported.
    """
    if kind not in known():
        raise ValueError(f"kind: unknown assigner {kind!r}{did_you_mean(str(kind), known())}")
    try:
        return import_plug_in(module_name(kind))
    except ValueError as error:
        raise ValueError(f"kind: {error}") from error


class CreditConfig(KindSection):
    """`kind` is the name of a file in hgrpo/credit; the other keys are fields of its `Settings`."""

    kind: str = Field("flat", description="name of a file in hgrpo/credit")

    @classmethod
    def settings_model(cls, kind: str) -> type[CreditSettings]:
        return vars(load(kind)).get("Settings", CreditSettings)
