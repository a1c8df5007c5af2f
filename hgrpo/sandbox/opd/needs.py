"""What a loss may need of a run, and how a phase of a run says whether it gives it.

Importing this module imports no torch.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hgrpo.sandbox.rule import Need

if TYPE_CHECKING:
    from hgrpo.sandbox.opd.settings import OpdSettings


@dataclass(frozen=True)
class PhaseOfRun:
    """A run, and the settings of the loss of one of its phases."""

    run: "OpdSettings"
    rule: dict[str, Any]


NEEDS: dict[str, Need[PhaseOfRun]] = {
    "several_tokens": Need(
        "a top_k above 1; given a single token, its probability is always 1",
        lambda phase: phase.rule["k"] > 1,
    ),
    "truncates": Need(
        "a top_k below the number of actions; else it is the exact divergence",
        lambda phase: phase.rule["k"] < phase.run.actions,
        degenerate=True,
    ),
    "ratios": Need(
        "ratios other than 1 for its clip to act: inner_epochs above 1",
        lambda phase: phase.run.inner_epochs > 1,
        degenerate=True,
    ),
}
