"""Plug-in interface of rollout engines. An engine is named after its folder."""

import pkgutil
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import hgrpo.rollout
from hgrpo.config.strict import Strict
from hgrpo.errors import did_you_mean, import_plug_in

if TYPE_CHECKING:
    from transformers import PretrainedConfig

    from hgrpo.policy.load import SavedPolicy
    from hgrpo.policy.policy import Policy
    from hgrpo.rollout.engine import RolloutEngine, Sampling


class EngineKind(ABC):
    """Base class of rollout engine plug-ins.

    The `__init__.py` of an engine's folder defines `ENGINE`, an instance of a subclass. It must not
    import torch at the top level, because it is imported to read a study. Methods import their
    dependencies locally.

    Attributes:
        Settings: pydantic model of a study's section `engine`, without the key `kind`. The default
            model has no keys.
        plays_saved_weights: whether the engine computes with exactly the saved weights, so that
            evaluations do not have to compare its log-probs with the trainer's.
    """

    Settings: type[Strict] = Strict
    plays_saved_weights: bool = False

    def check_installed(self) -> None:
        """Check that the engine's required packages are installed.

        Raises:
            UserError: a package is missing; the message contains the install command.
        """
        return

    def check_playable(self, config: "PretrainedConfig") -> None:
        """Check that the engine can sample from a language model with this config.

        Raises:
            UserError: the model is unsupported; the message contains the config key.
        """
        return

    @abstractmethod
    def make(
        self,
        settings: Strict,
        policy: "Policy | SavedPolicy",
        capacity: int,
        sampling: "Sampling",
        embeddings: bool,
    ) -> "RolloutEngine":
        """Create an engine that holds the policy's weights; see `RolloutEngine` for the arguments.

        Raises:
            UserError: the engine is not installed, or does not support the policy's model.
        """


def known() -> list[str]:
    """Names of all engines."""
    modules = pkgutil.iter_modules(hgrpo.rollout.__path__)
    return sorted(module.name for module in modules if module.ispkg)


def load(kind: str) -> EngineKind:
    """Import and return the plug-in of an engine.

    Raises:
        ValueError: the engine is unknown, or its module cannot be imported.
    """
    if kind not in known():
        raise ValueError(f"kind: unknown rollout engine {kind!r}{did_you_mean(str(kind), known())}")
    return import_plug_in(f"hgrpo.rollout.{kind}").ENGINE
