"""Estimates of a study's jobs: from its past jobs, else from reference rates or time limits."""

import contextlib
import functools
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from hgrpo.config.canonical import as_json
from hgrpo.errors import UserError
from hgrpo.stages.order import load, runs_a_model
from hgrpo.study.recorded import recorded_study
from hgrpo.study.study import Study
from hgrpo.workflow.exchange.imports import imported
from hgrpo.workflow.planning.jobs import SHARED, bytes_of_jobs, seconds_of_jobs
from hgrpo.workflow.planning.machine_speed import MachineSpeed, machine_speed
from hgrpo.workflow.planning.reference import OF_ANY_MODEL, Reference

# Sources of an estimate: past jobs of the same arm; of other arms or of a colleague; rates of a
# reference machine; the job's time limit.
OWN, OTHER_ARMS, REFERENCE, CEILING = range(4)


class Estimate(NamedTuple):
    """Seconds or bytes of a job, and the source: OWN, OTHER_ARMS, REFERENCE or CEILING."""

    value: float
    source: int = OWN


class Estimates:
    """Estimates of a study's jobs by stage and arm.

    Past jobs of the same arm count first. Those of other arms are scaled by the ratio of the
    reference estimates. A colleague's seconds count only if no job of the stage has run here.
    Jobs with other settings do not count: a small trial says little about a large run.

    Args:
        study: the study.
        folder: results/<study>.
        speed: speed of this machine; None measures it.
    """

    def __init__(self, study: Study, folder: Path, speed: MachineSpeed | None = None):
        self._arms, self._folder = {SHARED, *study.methods}, folder
        self._study, self._recorded = study, study
        self._reference = Reference(study, speed or machine_speed())
        self._seconds, self._imported = functools.cache(self._past_seconds), imported(folder)
        self._bytes = functools.cache(
            lambda stage: self._as_now(bytes_of_jobs(folder, stage), stage)
        )
        with contextlib.suppress(UserError):  # no run yet, or one of an earlier version
            self._recorded = recorded_study(folder)

    def seconds(self, stage: str, arm: str) -> Estimate:
        """Seconds of a job."""
        past, best = self._seconds(stage)
        otherwise = CEILING if self._reference.is_ceiling(stage) else REFERENCE
        reference = functools.partial(self._reference.seconds, stage)
        return self._estimate(past, arm, reference, best, otherwise)

    def bytes(self, stage: str, arm: str) -> Estimate:
        """Bytes that a job writes."""
        reference = functools.partial(self._reference.bytes, stage)
        return self._estimate(self._bytes(stage), arm, reference, OWN, REFERENCE)

    def _past_seconds(self, stage: str) -> tuple[Mapping[str, list[float]], int]:
        """Seconds of past jobs by arm, and the source that they are for the same arm."""
        here = seconds_of_jobs(self._folder, stage, lambda job: not self._imported(job))
        past = here or seconds_of_jobs(self._folder, stage)
        return self._as_now(past, stage), OWN if here else OTHER_ARMS

    def _as_now(self, past: Mapping[str, list[float]], stage: str) -> dict[str, list[float]]:
        """The past values of arms with the present settings, games, model and engine."""
        return {arm: values for arm, values in past.items() if self._unchanged(stage, arm)}

    def _unchanged(self, stage: str, arm: str) -> bool:
        now, then, method = self._study, self._recorded, None if arm == SHARED else arm
        if stage in OF_ANY_MODEL or now is then:
            return True
        if method and not {method} <= now.methods.keys() & then.methods.keys():
            return False

        def settings(study: Study) -> tuple:
            model = (study.model, study.config.engine) if runs_a_model(stage) else ()
            return study.env, model, as_json(load(stage).from_study(study, method))

        return settings(now) == settings(then)

    def _estimate(
        self,
        past: Mapping[str, list[float]],
        arm: str,
        reference: Callable[[str], float],
        best: int,
        otherwise: int,
    ) -> Estimate:
        if past.get(arm):
            return Estimate(statistics.fmean(past[arm]), best)
        known = {name: values for name, values in past.items() if name in self._arms}
        expected = sum(len(values) * reference(name) for name, values in known.items())
        if not expected:
            return Estimate(reference(arm), otherwise)
        return Estimate(reference(arm) * sum(map(sum, known.values())) / expected, OTHER_ARMS)
