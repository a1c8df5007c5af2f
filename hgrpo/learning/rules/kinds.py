"""Finds update rules by the name that an arm's `objective` gives."""

from types import ModuleType

from hgrpo.config.plug_in import import_plug_in
from hgrpo.config.read import did_you_mean
from hgrpo.learning.rules.settings import RuleSettings

# The names of the literature, and the rules' modules in this package.
_MODULES = {
    "PPOClip": "ppo_clip",
    "DualClip": "dual_clip",
    "REINFORCE": "reinforce",
    "PG": "pg",
    "ASPO": "aspo",
    "R2VPO": "r2vpo",
    "DG": "dg",
    "GroupPG": "group_pg",
    "TPONoAnchor": "tpo_no_anchor",
    "TPO": "tpo",
}
# Rules of the sandbox -> what they need and an agent's task does not have.
_NEED = {
    **dict.fromkeys(("CE", "SelfDistillDG", "SCOPELite"), "the right answer at every token"),
    "DGToken": "a reward for every token",
    **dict.fromkeys(("TPOToken", "GRPOToken"), "rewards of several candidates at every token"),
    "TPOFullAction": "a policy with a handful of actions",
}


def known() -> list[str]:
    """Names of all rules that train agents."""
    return list(_MODULES)


def module_name(rule: str) -> str:
    """Dotted name of a rule's module; a round's code hash covers what the module imports."""
    return f"{__package__}.{_MODULES[rule]}"


def load(rule: str) -> ModuleType:
    """The module of a rule.

    Raises:
        ValueError: no rule has that name, or it needs what an agent's task does not have.
    """
    if rule in _NEED:
        raise ValueError(f"rule: {rule} needs {_NEED[rule]}, which an agent's task does not give")
    if rule not in _MODULES:
        raise ValueError(f"rule: no update rule {rule!r}{did_you_mean(str(rule), known())}")
    return import_plug_in(module_name(rule))


def settings_of(rule: str) -> type[RuleSettings]:
    """The pydantic class of a rule's settings; raises as `load` does."""
    return load(rule).Settings
