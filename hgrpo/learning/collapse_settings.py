"""The section `training.collapse`. `hgrpo.learning.collapse` says what is measured.

Importing this module imports no torch.
"""

from pydantic import Field

from hgrpo.config.strict import Strict


class CollapseConfig(Strict):
    """How much replies depend on their prompts.

    It is measured at the run's first step and at the last step of each round.
    """

    pairs: int = Field(
        64,
        gt=1,
        description="trajectories, drawn from those of the step, of which a prompt and its reply "
        "are taken; a step with fewer gives all of its own. Every reply is scored under every "
        "prompt, so the cost grows with the square",
    )
