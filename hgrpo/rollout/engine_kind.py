"""Plug-ins for rollout engines; an engine is named after its folder in this package."""

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
    """One kind of rollout engine: a folder of hgrpo/rollout whose `ENGINE` is an instance.

    Reading a study imports the folder's `__init__.py`, which must therefore not import torch.
    Methods import their dependencies locally.

    Attributes:
        Settings: pydantic class of the keys next to `kind` in the study's section `engine`; by
            default empty.
        plays_saved_weights: whether the engine computes with exactly the saved weights, so that an
            evaluation does not have to check it against a trainable policy.
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
    """The engine's plug-in.

    Raises:
        ValueError: the engine is unknown, or its module cannot be imported.
    """
    if kind not in known():
        raise ValueError(f"kind: unknown rollout engine {kind!r}{did_you_mean(str(kind), known())}")
    return import_plug_in(f"hgrpo.rollout.{kind}").ENGINE
