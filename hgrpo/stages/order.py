"""The stages in the order in which they run."""

import importlib
from types import ModuleType

STAGES = (
    "study_config",
    "assets",
    "expert",
    "base",
    "sft",
    "rl_round",
    "credit_fit",
    "evaluate",
    "merge",
    "figures",
    "report",
    "credit_agreement",
)


def load(stage: str) -> ModuleType:
    """The module of a stage.

    Raises:
        KeyError: there is no such stage.
    """
    if stage not in STAGES:
        raise KeyError(stage)
    return importlib.import_module(f"hgrpo.stages.{stage}")


def belongs_to_an_arm(stage: str) -> bool:
    """Whether each job of a stage belongs to one method, and not to all of them."""
    return "{method}" in load(stage).FOLDER


def resources_key(stage: str) -> str:
    """The stage whose resources a stage shares: its own, unless it names another."""
    resources = load(stage).RESOURCES
    return resources if isinstance(resources, str) else stage


def runs_a_model(stage: str) -> bool:
    """Whether a stage runs or keeps a model, so that its cost with one says nothing of another."""
    return STAGES.index("base") <= STAGES.index(stage) <= STAGES.index("evaluate")
