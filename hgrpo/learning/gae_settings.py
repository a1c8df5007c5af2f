"""Settings of generalised advantage estimation."""

from typing import Annotated, Literal

from pydantic import Field

from hgrpo.config.strict import Strict

Share = Annotated[float, Field(ge=0, le=1)]


class GaeConfig(Strict):
    """Discounts of the estimate; they do nothing for `advantage: group`."""

    gamma: Share = Field(
        1.0, description="discount from token to token, and for turn_gae from turn to turn"
    )
    lam: Share = Field(
        1.0,
        description="lambda: 1 trusts the rewards that were earned, 0 the critic's next value",
    )
    gamma_high: Share = Field(0.95, description="discount from turn to turn of bi_level_gae")
    truncation: Literal["end", "bootstrap"] = Field(
        "end",
        description="what follows where the turn cap or the context length ended an episode: end: "
        "nothing, the cap is a rule of the game; bootstrap: what the critic expects of the state "
        "after the last turn, so the cap only cuts the play short",
    )
