"""Estimate the cost of a study's jobs from past jobs, reference rates or time limits."""

import functools
import statistics
from collections import defaultdict
from typing import NamedTuple

from hgrpo.config.canonical import settings_digest
from hgrpo.provenance import has_bfloat16, processor
from hgrpo.store.entry import read_all
from hgrpo.store.plan import SHARED, Plan
from hgrpo.workflow.planning.reference import Reference

# Sources of an estimate, from best to worst: past jobs with the same settings, past jobs of other
# arms, rates of a reference machine, the job's time limit.
OWN, OTHER_ARMS, REFERENCE, CEILING = range(4)
_SECONDS, _BYTES = range(2)
# Maps (stage, digest of the settings) to (run time in seconds, output in bytes) of each past job.
Past = dict[tuple[str, str], list[tuple[float, float]]]


class Estimate(NamedTuple):
    """Estimated seconds or bytes of a job; `source` is OWN, OTHER_ARMS, REFERENCE or CEILING."""

    value: float
    source: int = OWN


def past_jobs() -> Past:
    """All jobs in the store that ran on the same processor model."""
    past: Past = defaultdict(list)
    for made in read_all().values():
        if made["processor"] == processor() and "taken_from" not in made:
            past[made["stage"], made["settings"]].append((made["seconds"], made["bytes"]))
    return past


class Estimates:
    """Estimates of the duration (s) and output size (bytes) of a study's jobs, by stage and arm.

    Past jobs with the same settings, from any study, are preferred. Past jobs of this study's other
    arms are scaled by the ratio of the two arms' reference estimates.

    Args:
        plan: the study's plan.
        past: past jobs. If None, they are read from the store.
        bfloat16: whether the processor has bfloat16 instructions. If None, this is detected.
    """

    def __init__(self, plan: Plan, past: Past | None = None, bfloat16: bool | None = None):
        self._plan = plan
        self._past = past_jobs() if past is None else past
        self._reference = Reference(plan.study, has_bfloat16() if bfloat16 is None else bfloat16)
        self.seconds = functools.cache(functools.partial(self._estimate, _SECONDS))
        self.bytes = functools.cache(functools.partial(self._estimate, _BYTES))

    def _estimate(self, unit: int, stage: str, arm: str) -> Estimate:
        reference = self._reference.seconds if unit == _SECONDS else self._reference.bytes
        if same := self._values(stage, arm, unit):
            return Estimate(statistics.fmean(same))
        arms = () if arm == SHARED else self._plan.study.methods
        others = {name: self._values(stage, name, unit) for name in arms}
        expected = sum(len(each) * reference(stage, name) for name, each in others.items() if each)
        if not expected:
            ceiling = unit == _SECONDS and self._reference.is_ceiling(stage)
            return Estimate(reference(stage, arm), CEILING if ceiling else REFERENCE)
        scale = sum(map(sum, others.values())) / expected
        return Estimate(reference(stage, arm) * scale, OTHER_ARMS)

    def _values(self, stage: str, arm: str, unit: int) -> list[float]:
        settings = self._plan.settings(stage, None if arm == SHARED else arm)
        return [job[unit] for job in self._past.get((stage, settings_digest(settings)), ())]
