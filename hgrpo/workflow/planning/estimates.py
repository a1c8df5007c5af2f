"""Estimates of a study's jobs: from past jobs, else from reference rates or time limits."""

import functools
import statistics
from typing import NamedTuple

from hgrpo.config.canonical import settings_digest
from hgrpo.store.plan import SHARED, Plan
from hgrpo.workflow.planning.jobs import Past, past_jobs
from hgrpo.workflow.planning.machine_speed import MachineSpeed, machine_speed
from hgrpo.workflow.planning.reference import Reference

# Sources of an estimate: past jobs with the same settings; other arms; rates of a reference
# machine; the job's time limit.
OWN, OTHER_ARMS, REFERENCE, CEILING = range(4)
_SECONDS, _BYTES = range(2)


class Estimate(NamedTuple):
    """Seconds or bytes of a job, and the source: OWN, OTHER_ARMS, REFERENCE or CEILING."""

    value: float
    source: int = OWN


class Estimates:
    """Estimates of a study's jobs by stage and arm.

    Past jobs with the same settings count first, of any study. Those of the study's other arms are
    scaled by the ratio of the reference estimates.

    Args:
        plan: the study's plan.
        past: past jobs; None reads them from the store.
        speed: speed of this machine; None measures it.
    """

    def __init__(self, plan: Plan, past: Past | None = None, speed: MachineSpeed | None = None):
        self._plan = plan
        self._past = past_jobs() if past is None else past
        self._reference = Reference(plan.study, speed or machine_speed())
        self.seconds, self.bytes = functools.cache(self._seconds), functools.cache(self._bytes)

    def _seconds(self, stage: str, arm: str) -> Estimate:
        """Seconds of a job."""
        otherwise = CEILING if self._reference.is_ceiling(stage) else REFERENCE
        return self._estimate(stage, arm, _SECONDS, otherwise)

    def _bytes(self, stage: str, arm: str) -> Estimate:
        """Bytes that a job writes."""
        return self._estimate(stage, arm, _BYTES, REFERENCE)

    def _estimate(self, stage: str, arm: str, what: int, otherwise: int) -> Estimate:
        reference = self._reference.seconds if what == _SECONDS else self._reference.bytes
        if same := self._values(stage, arm, what):
            return Estimate(statistics.fmean(same))
        arms = () if arm == SHARED else self._plan.study.methods
        others = {name: self._values(stage, name, what) for name in arms}
        expected = sum(len(each) * reference(stage, name) for name, each in others.items() if each)
        if not expected:
            return Estimate(reference(stage, arm), otherwise)
        scale = sum(map(sum, others.values())) / expected
        return Estimate(reference(stage, arm) * scale, OTHER_ARMS)

    def _values(self, stage: str, arm: str, what: int) -> list[float]:
        settings = self._plan.settings(stage, None if arm == SHARED else arm)
        return [each[what] for each in self._past.get((stage, settings_digest(settings)), ())]
