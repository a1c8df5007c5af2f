"""Checks before the first job of a run, and links to its results."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.errors import UserError
from hgrpo.stages.order import STAGES, runs_a_model
from hgrpo.store.entry import link, read_made, unlink, write_plan
from hgrpo.store.lock import locked
from hgrpo.store.plan import Planned
from hgrpo.workflow import warm
from hgrpo.workflow.planning.estimates import Estimates
from hgrpo.workflow.planning.forecast import forecasts, wall_line
from hgrpo.workflow.planning.profile import Profile
from hgrpo.workflow.preflight import check_jobs
from hgrpo.workflow.rules import StudyRules
from hgrpo.workflow.watch import show_progress

if TYPE_CHECKING:
    from snakemake.workflow import Workflow

# Minimum number of jobs for a warm process. Smaller runs end before the process is ready.
_FEW = 4


@contextmanager
def one_line_errors() -> Iterator[None]:
    """If the block raises a UserError or OSError, print it on one line and exit with status 1."""
    try:
        yield
    except (UserError, OSError) as error:
        sys.exit(f"error: {error}")


class Run:
    """A run of a study. `elsewhere` means that results are in a bucket and cannot be linked."""

    def __init__(self, rules: StudyRules, elsewhere: bool):
        self.rules, self.plan, self.elsewhere = rules, rules.plan, elsewhere
        self._lock = ExitStack()
        # Before Snakemake looks for results. Submitted jobs hold the lock themselves.
        if not elsewhere and not rules.for_one_job:
            self._lock.enter_context(locked())

    @one_line_errors()
    def start(self, workflow: "Workflow") -> None:
        """Check requirements, write job.json of every pending job, and link finished results."""
        jobs = [job for job in workflow.dag.needrun_jobs() if job.rule.name in STAGES]
        planned = [self.rules.job(job.rule.name, job.wildcards) for job in jobs]
        of_study = any(job.rule.name in {*STAGES, "all"} for job in workflow.dag.jobs)
        if workflow.executor_plugin.common_settings.touch_exec or not of_study:
            self._lock.close()
            return
        executor = workflow.executor_plugin.name
        jobs = [(each.stage, each.job.method or None) for each in planned]
        check_jobs(self.plan.study, jobs, os.environ, self.elsewhere, executor)
        self.end()
        for each in planned:
            self.rules.write(each)
        for name in dict.fromkeys(method for stage, method in jobs if stage == "rl_round"):
            if caution := self.plan.study.methods[name].credit_caution(flat=False):
                print(f"caution: {name}: {caution}", file=sys.stderr)
        if self.elsewhere:
            return
        unlink(Path(self.plan.root), planned)
        write_plan(self.plan)
        if executor == "local":
            # Progress is not shown on a cluster, where hundreds of jobs may run at the same time.
            cores = workflow.resource_settings.cores
            expected = forecasts(self.plan, Estimates(self.plan), cores, planned)
            print(wall_line(expected, Profile(Path(), cores)), file=sys.stderr, flush=True)
            show_progress(planned)
            if self._warms(planned):
                warm.start()

    def _warms(self, planned: list[Planned]) -> bool:
        """Whether at least `_FEW` jobs run a model on this machine's CPU."""
        config = self.plan.study.config
        if any(stage.gpu for stage in dict(config.resources).values()):
            return False
        return config.engine.kind == "torch" and sum(runs_a_model(p.stage) for p in planned) >= _FEW

    @one_line_errors()
    def end(self) -> None:
        """Link the finished results."""
        if not self.elsewhere:
            jobs = self.plan.jobs(asked_for=True)
            link(Path(self.plan.root), (read_made(each.entry) for each in jobs if each.made))
