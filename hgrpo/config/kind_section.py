"""Config sections in which one key selects a plug-in and the other keys are its settings."""

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from hgrpo.config.read import SectionError
from hgrpo.config.strict import Strict


class KindSection(BaseModel):
    """Base class of sections that select a plug-in.

    Attributes:
        key: name of the field that selects the plug-in; each subclass declares this field.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    key: ClassVar[str] = "kind"

    @classmethod
    @abstractmethod
    def settings_model(cls, kind: str) -> type[Strict]:
        """The pydantic model of a plug-in's settings; ValueError if the plug-in does not exist."""

    @cached_property
    def declared(self) -> Any:
        """The plug-in's validated settings, an instance of `settings_model`."""
        return self.settings_model(getattr(self, self.key)).model_validate(self.settings)

    @property
    def settings(self) -> dict[str, Any]:
        """The section without `key`, as plain JSON types."""
        return dict(self.model_extra or {})

    @model_validator(mode="before")
    @classmethod
    def _check_the_kinds_settings(cls, section: Any) -> Any:
        if not isinstance(section, Mapping):
            return section
        kind = section.get(cls.key, cls.model_fields[cls.key].default)
        model = cls.settings_model(kind)
        try:
            settings = model.model_validate({k: v for k, v in section.items() if k != cls.key})
        except ValidationError as error:
            raise SectionError(model, error, also=[cls.key]) from None
        return {cls.key: kind} | settings.model_dump(mode="json")
