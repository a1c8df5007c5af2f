"""Checks before the first job of a run, and links to its results."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.errors import UserError
from hgrpo.stages.order import STAGES, runs_a_model
from hgrpo.store.code import save_hashes
from hgrpo.store.entry import link, unlink, write_plan
from hgrpo.store.plan import HASHES, STORE, Planned
from hgrpo.workflow import warm
from hgrpo.workflow.planning.estimates import Estimates
from hgrpo.workflow.planning.forecast import forecasts, wall_line
from hgrpo.workflow.planning.profile import Profile
from hgrpo.workflow.preflight import check_jobs
from hgrpo.workflow.rules import StudyRules
from hgrpo.workflow.watch import show_progress

if TYPE_CHECKING:
    from snakemake.workflow import Workflow

# Fewer jobs than this end before the warm process is ready.
_FEW = 4


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Within the block, a `UserError` ends snakemake with one line and exit status 1."""
    try:
        yield
    except UserError as error:
        sys.exit(f"error: {error}")


class Run:
    """A run of a study.

    Args:
        rules: the rules' view of the study's plan.
        elsewhere: whether the results are in a bucket, where there are no links.
    """

    def __init__(self, rules: StudyRules, elsewhere: bool):
        self.rules, self.plan, self.elsewhere = rules, rules.plan, elsewhere

    def start(self, workflow: "Workflow") -> None:
        """Check the needs of the jobs to run, write their files, and link finished results."""
        jobs = [job for job in workflow.dag.needrun_jobs() if job.rule.name in STAGES]
        planned = [self.rules.job(job.rule.name, job.wildcards) for job in jobs]
        of_study = any(job.rule.name in {*STAGES, "all"} for job in workflow.dag.jobs)
        if workflow.executor_plugin.common_settings.touch_exec or not of_study:
            return
        executor = workflow.executor_plugin.name
        with one_line_errors():
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
        save_hashes(STORE / HASHES)
        if executor == "local":
            # On a cluster, a hundred jobs may run at once: too many for this display.
            cores = workflow.resource_settings.cores
            expected = forecasts(self.plan, Estimates(self.plan), cores, planned)
            line = wall_line(expected, Profile(Path(), cores))
            print(line, file=sys.stderr, flush=True)
            show_progress(planned)
            if self._warms(planned):
                warm.start()

    def _warms(self, planned: list[Planned]) -> bool:
        """Whether many jobs run a model on this machine's CPU."""
        config = self.plan.study.config
        if any(stage.gpu for stage in dict(config.resources).values()):
            return False
        return config.engine.kind == "torch" and sum(runs_a_model(p.stage) for p in planned) >= _FEW

    def end(self) -> None:
        """Link the finished results."""
        if not self.elsewhere:
            jobs = self.plan.jobs(asked_for=True)
            with one_line_errors():
                link(Path(self.plan.root), (each.entry for each in jobs if each.made))
