"""Registry of update rules; a rule is a class in a module of this package."""

import inspect
import pkgutil
from functools import cache

import hgrpo.formulas
from hgrpo.errors import did_you_mean, import_plug_in
from hgrpo.formulas.rule import Rule


@cache
def every() -> dict[str, type[Rule]]:
    """All rules by name.

    Raises:
        ValueError: a module of the package cannot be imported.
    """
    modules = pkgutil.iter_modules(hgrpo.formulas.__path__, "hgrpo.formulas.")
    return {
        name: value
        for module in (import_plug_in(each.name) for each in modules)
        for name, value in vars(module).items()
        if _is_rule(value) and value.__module__ == module.__name__
    }


def of_piece(piece: str) -> dict[str, type[Rule]]:
    """Rules of one part of the sandbox, e.g. "rl", by name."""
    return {name: rule for name, rule in every().items() if rule.piece == piece}


def known() -> list[str]:
    """Names of all rules that can train agents."""
    return [name for name, rule in every().items() if rule.agents]


def module_name(rule: str) -> str:
    """Dotted name of the Python module that defines a rule."""
    return every()[rule].__module__


def load(rule: str) -> type[Rule]:
    """Return the rule of this name, which must be able to train agents.

    Raises:
        ValueError: no rule has that name, or the rule has requirements that agents do not meet.
    """
    if rule not in every():
        raise ValueError(f"rule: unknown update rule {rule!r}{did_you_mean(str(rule), known())}")
    if lacks := every()[rule].agents_lack:
        raise ValueError(f"rule: {rule} requires {lacks}, which agents' tasks do not provide")
    if not every()[rule].agents:
        raise ValueError(f"rule: {rule} cannot train agents; its class does not set `agents`")
    return every()[rule]


def _is_rule(value: object) -> bool:
    is_class = inspect.isclass(value) and issubclass(value, Rule)
    return is_class and not inspect.isabstract(value)
