"""Config of the comparison of all assigners on the same rollouts."""

from pydantic import Field

from hgrpo.config.strict import Strict


class AgreementConfig(Strict):
    """Settings of `snakemake credit_agreement`."""

    counterfactual_groups: int = Field(
        4,
        ge=0,
        description="groups whose turns are all played anew for counterfactual credit, the first "
        "of the round; 0: leave such methods out",
    )
