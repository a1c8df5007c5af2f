"""The section `objective` of an arm, and the update rule that it names."""

from types import ModuleType
from typing import ClassVar

from pydantic import Field

from hgrpo.config.kind_section import KindSection
from hgrpo.config.plug_in import import_plug_in
from hgrpo.config.read import did_you_mean
from hgrpo.learning.rules.rule import UpdateRule
from hgrpo.learning.rules.settings import RuleSettings
from hgrpo.learning.settings import TrainingConfig

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


class ObjectiveConfig(KindSection):
    """`rule` names an update rule; the other keys are what its `Settings` accept."""

    key: ClassVar[str] = "rule"

    rule: str = Field("PPOClip", description=f"{', '.join(known())}")

    @classmethod
    def settings_model(cls, kind: str) -> type[RuleSettings]:
        return settings_of(kind)

    def make(self, training: TrainingConfig) -> UpdateRule:
        """The rule with its settings and those of training."""
        return load(self.rule).make(self.declared, training)
