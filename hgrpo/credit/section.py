"""Which credit assigner a method uses, with that assigner's own settings beside its name."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hgrpo.config.read import SectionError
from hgrpo.credit import kinds


class CreditConfig(BaseModel):
    """`kind` names a file in hgrpo/credit; the other keys are what its `Settings` accept."""

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: str = Field("flat", description="name of a file in hgrpo/credit")

    @model_validator(mode="before")
    @classmethod
    def _with_the_kinds_settings(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        kind = given.get("kind", "flat")
        own = {key: value for key, value in given.items() if key != "kind"}
        try:
            settings = kinds.settings_of(kind)(**own)
        except ValidationError as error:
            raise SectionError(kinds.settings_of(kind), error, also=["kind"]) from None
        return {"kind": kind} | settings.model_dump(mode="json")

    def labelled(self, label: str) -> str:
        """An arm's label with what its assigner wants said beside it: who judged, say."""
        remark = getattr(kinds.settings_of(self.kind)(**self.settings), "label_remark", "")
        return f"{label} {remark}".strip()

    @property
    def demands(self) -> Mapping[str, tuple[object, str]]:
        """Keys of the method that this credit leaves one value: key -> (value, why)."""
        return kinds.demands_of(self.kind)

    @property
    def settings(self) -> dict[str, Any]:
        """The keys beside `kind`."""
        return dict(self.model_extra or {})
