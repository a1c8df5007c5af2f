"""The stages in the order in which they run."""

import importlib
from types import ModuleType

STAGES = (
    "study_config",
    "fetch_assets",
    "assets",
    "expert",
    "base",
    "sft",
    "rl_round",
    "credit_fit",
    "truth_round",
    "gradients_round",
    "evaluate",
    "merge",
    "figures",
    "report",
    "credit_agreement",
    "gradients_page",
    "viewer",
    "paper",
)


def load(stage: str) -> ModuleType:
    """The module of a stage; KeyError if there is no such stage."""
    if stage not in STAGES:
        raise KeyError(stage)
    return importlib.import_module(f"hgrpo.stages.{stage}")


def belongs_to_an_arm(stage: str) -> bool:
    """Whether a stage runs once per method."""
    return "{method}" in load(stage).FOLDER


def resources_key(stage: str) -> str:
    """Key of a stage in the section `resources`; a stage can share the key of another stage."""
    resources = load(stage).RESOURCES
    return resources if isinstance(resources, str) else stage


def runs_a_model(stage: str) -> bool:
    """Whether a stage runs or stores a language model."""
    return STAGES.index("base") <= STAGES.index(stage) <= STAGES.index("evaluate")
