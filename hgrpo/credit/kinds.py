"""Finds credit assigners by name. An assigner's name is that of its file or folder in this package.

An assigner's module has
    make(settings, context) -> CreditAssigner
and may have
    Settings    a subclass of `CreditSettings`: the assigner's keys and declarations;
    fit(settings, rounds, previous, seed, round, out, show) -> str
                if `Settings.fits`: learns from the rounds so far. `rounds` are their folders, in
                order; `previous` is the folder of an earlier fit, or None; `show` is a `Progress`.
                `fit` writes model.safetensors, model.json and train_log.json ({"rows",
                "elapsed_s"}) into the folder `out`, and returns one line about the result.
Reading a study imports the module. Importing it must therefore not import torch.
"""

import pkgutil
from types import ModuleType

import hgrpo.credit
from hgrpo.config.plug_in import import_plug_in
from hgrpo.config.read import did_you_mean
from hgrpo.credit.settings import CreditSettings

_SHARED = {
    *("altered", "base", "kinds", "prompt_states", "replay"),
    *("section", "settings", "to_go", "value_changes"),
}


def known() -> list[str]:
    """Names of all assigners."""
    found = pkgutil.iter_modules(hgrpo.credit.__path__)
    return sorted(module.name for module in found if module.name not in _SHARED)


def module_name(kind: str) -> str:
    """Dotted name of an assigner's module; a round's code hash covers what the module imports."""
    return f"hgrpo.credit.{kind}"


def load(kind: str) -> ModuleType:
    """The module of an assigner.

    Raises:
        ValueError: no assigner has that name, or its module cannot be imported or has no `make`.
    """
    if kind not in known():
        raise ValueError(f"kind: no credit assigner {kind!r}{did_you_mean(str(kind), known())}")
    name = module_name(kind)
    try:
        module = import_plug_in(name)
    except ValueError as error:
        raise ValueError(f"kind: {error}") from error
    if not callable(vars(module).get("make")):
        raise ValueError(f"kind: {name} has no function `make(settings, context)`")
    return module


def settings_of(kind: str) -> type[CreditSettings]:
    """The pydantic class of an assigner's settings.

    Raises:
        ValueError: no assigner has that name, or its `Settings` does not derive from
            `CreditSettings`.
    """
    model = vars(load(kind)).get("Settings", CreditSettings)
    if not issubclass(model, CreditSettings):
        raise ValueError(
            f"kind: {module_name(kind)}.Settings must be a subclass of "
            "hgrpo.credit.settings.CreditSettings"
        )
    return model
