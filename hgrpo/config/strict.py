"""The base class of every config section: unknown keys are errors, values are frozen."""

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """A config section that rejects keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)
