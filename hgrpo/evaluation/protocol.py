"""What a comparison compares: the arms, the reference and the settings of the statistics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hgrpo.evaluation.settings import StatisticsConfig


@dataclass(frozen=True)
class Protocol:
    """The arms to compare, and the settings of the statistics.

    Attributes:
        reference: name of the arm that the other trained arms are compared with. If `methods` does
            not list it, the comparison waits: there are no verdicts against it.
        untrained: name of the supervised policy's arm, evaluated at several temperatures, or None.
        methods: arms in display order. Arms with episodes that are not in this list come after it.
        step_trajectories: trained arm -> number of trajectories that it trains on in a step.
        twin: name of the reference's A/A twin, which differs in its random numbers only, or None.
        settings: endpoint, score, thresholds, and the settings of intervals and verdicts.
    """

    reference: str = "flatGRPO"
    untrained: str | None = "SFTOnly"
    methods: Sequence[str] = ()
    step_trajectories: Mapping[str, int] = field(default_factory=dict)
    twin: str | None = None
    settings: StatisticsConfig = field(default_factory=StatisticsConfig)

    @property
    def expects_reference(self) -> bool:
        """Whether the reference must have episodes: it is listed, or no arm is."""
        return not self.methods or self.reference in self.methods

    @property
    def level(self) -> float:
        """Confidence level of the intervals."""
        return self.settings.confidence
