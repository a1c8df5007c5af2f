"""Settings of a run of vpo, named like the flags of the original sandbox."""

from typing import Literal

from pydantic import Field

from hgrpo.formulas import kinds
from hgrpo.formulas.rule import Need
from hgrpo.sandbox.run_settings import RunSettings

RULES = kinds.of_piece("vpo")
NEEDS: dict[str, Need["VpoSettings"]] = {
    "groups": Need("groups (group_size above 1)", lambda run: run.group_size > 1),
    "one_answer": Need("single answers (num_candidates 1)", lambda run: run.num_candidates == 1),
    "several_answers": Need(
        "sets of several answers (num_candidates above 1)", lambda run: run.num_candidates > 1
    ),
    "clip_acts": Need(
        "ratios other than 1 for its clip to have an effect (inner_epochs above 1)",
        lambda run: run.inner_epochs > 1,
        degenerate=True,
    ),
}


class VpoSettings(RunSettings):
    """Settings of one arm of vpo, for a set of seeds."""

    RULES = RULES
    NEEDS = NEEDS

    method: str = Field("VPOGRPO", description="name of the update rule")
    task: Literal["pareto_front"] = Field("pareto_front", description="the task")
    num_steps: int = Field(500, gt=0, description="number of sampled batches")
    batch_size: int = Field(128, gt=0, description="sets per batch")
    inner_epochs: int = Field(4, gt=0, description="updates on each batch")
    lr: float = Field(3e-3, gt=0, description="learning rate of Adam")
    hidden: int = Field(32, gt=0, description="width of the policy's embeddings and hidden layer")
    num_prompts: int = Field(8, gt=0, description="number of prompts of the task")
    num_candidates: int = Field(3, gt=0, description="answers per set")
    compat: Literal["none", "reference"] = Field(
        "none",
        description="evaluation. reference: samples 12 sets per prompt, as in the original; none: "
        "is exact",
    )
