"""Settings of the torch engine."""

from pydantic import Field

from hgrpo.config.strict import Strict


class Settings(Strict):
    """Keys beside `kind: torch`."""

    compiled: bool = Field(
        False,
        description="whether a kernel that numba compiles computes the attention: faster, on a CPU "
        "only, equal up to rounding",
    )
