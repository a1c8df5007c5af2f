"""The plug-ins that make rollout engines; an engine's name is that of its folder here."""

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

    Reading a study imports the folder's `__init__.py`. Importing it must therefore not import
    torch. A method imports what it needs in its own body.

    Attributes:
        Settings: pydantic class of the keys beside `kind` in the study's section `engine`; by
            default there are no such keys.
        plays_saved_weights: whether the engine computes with the weights exactly as they were
            saved. If so, an evaluation needs no trainable policy to check the engine against.
    """

    Settings: type[Strict] = Strict
    plays_saved_weights: bool = False

    def check_installed(self) -> None:
        """Check that the packages the engine needs are installed.

        Raises:
            UserError: a package is missing; the message has the command that installs it.
        """
        return

    def check_playable(self, config: "PretrainedConfig") -> None:
        """Check that the engine can sample from a language model with this config.

        Raises:
            UserError: the engine cannot. The message names the key of the config.
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
        """Make an engine that holds the policy's weights; `RolloutEngine` explains the arguments.

        Raises:
            UserError: the engine is not installed, or it cannot run the policy's LLM.
        """


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
