"""What happens around the jobs of a run: checks before the first one, words after the last one."""

import atexit
import logging
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING, TypeVar

from hgrpo.errors import UserError
from hgrpo.provenance import revision
from hgrpo.stages.order import STAGES, load
from hgrpo.study.study import Study
from hgrpo.workflow.earlier_report import check_looking, keep_report
from hgrpo.workflow.ending import failure_lines
from hgrpo.workflow.exchange.overwrites import check_overwrites
from hgrpo.workflow.planning.estimates import Estimates
from hgrpo.workflow.planning.forecast import forecasts, wall_line
from hgrpo.workflow.planning.jobs import Job
from hgrpo.workflow.planning.profile import Profile
from hgrpo.workflow.preflight import (
    check_given_adapter,
    check_jobs,
    check_read_weights,
    other_revision_line,
)
from hgrpo.workflow.study_lock import hold_study

if TYPE_CHECKING:
    from snakemake.jobs import Job as SnakemakeJob
    from snakemake.workflow import Workflow

T, R = TypeVar("T"), TypeVar("R")
# Settings within a command: one quoted word, up to the next option or the log.
_SETTINGS = re.compile(r"--config '\{.*?\}' (?=--|>|$)", re.DOTALL)
# The open files that hold the locks of this process.
_HELD: list[IO[str]] = []
# Numbers of the signals that interrupted this process.
_INTERRUPTS: list[int] = []
# When the run began, and its plan in words.
_BEGAN, _PLANNED = time.time(), []


@contextmanager
def one_line_errors(about: str = "") -> Iterator[None]:
    """Within the block, a `UserError` ends snakemake with one line and exit status 1.

    Args:
        about: what the line says before the error.
    """
    try:
        yield
    except UserError as error:
        sys.exit(f"error: {about}{error}")


def told(get: Callable[[T], R]) -> Callable[[T], R]:
    """Wrap what a rule asks for a job's wildcards, so that a `UserError` in it takes one line."""

    def asked(wildcards: T) -> R:
        with one_line_errors():
            return get(wildcards)

    return asked


def check_writable(folder: Path) -> None:
    """Raise a `UserError` if Snakemake could keep no files in the folder that it works in."""
    if not os.access(folder, os.W_OK):
        raise UserError(f"{folder}: cannot be written; give --directory with a folder for results")


def short_commands(record: logging.LogRecord) -> bool:
    """A filter of log records: cut the settings out of the command of a failed job.

    They are thousands of characters of JSON; `snakemake -n -p` prints them whole.
    """
    if record.levelno >= logging.ERROR:
        for name in ("shellcmd", "msg"):
            if isinstance(text := getattr(record, name, None), str):
                setattr(record, name, _SETTINGS.sub("--config '{...}' ", text))
    return True


def before_jobs(workflow: "Workflow", study: Study, results: Path) -> None:
    """Lock the study, check what its jobs need, and copy the report if the next one holds less.

    Snakemake deletes a job's old outputs before it submits the job. Without the checks, a job that
    fails at once would destroy these outputs.

    Args:
        workflow: Snakemake's workflow with its plan.
        study: the study to run.
        results: results/<study>.

    Raises:
        UserError: another run holds the study, a job would overwrite imported results, somebody
            who only wants to look would train, or the jobs to run need something that is missing
            or damaged.
    """
    # With a storage provider, the results are elsewhere, and jobs run on machines with other
    # packages and files.
    elsewhere = workflow.storage_settings.default_storage_provider is not None
    if workflow.execution_settings.lock and not elsewhere:
        _HELD.append(hold_study(results))
    planned = list(workflow.dag.needrun_jobs())
    targets = {job.rule.name for job in workflow.dag.targetjobs}
    untrained = [
        (job.wildcards.method, job.wildcards.seed) for job in planned if job.rule.name == "rl_round"
    ]
    check_looking(targets, untrained, study.resolved(), study.overridden, results)
    jobs = [(job.rule.name, job.wildcards.get("method")) for job in planned]
    check_given_adapter(study, results)
    if not elsewhere:
        _check_results(study, results, planned)
    check_jobs(study, jobs, os.environ, elsewhere, workflow.executor_plugin.name)
    for name in dict.fromkeys(name for stage, name in jobs if stage == "rl_round"):
        if said := study.methods[name].credit_caution(flat=False):
            print(f"caution: {name}: {said}", file=sys.stderr)
    if ("sft", None) in jobs and (said := other_revision_line(study, revision())):
        print(said, file=sys.stderr)
    if ("report", None) in jobs and not elsewhere:
        said = keep_report(results, study.resolved())
        if said:
            print(said, file=sys.stderr)


def _check_results(study: Study, results: Path, planned: Collection["SnakemakeJob"]) -> None:
    """Stop a run that would overwrite imported results, or whose jobs would read damaged weights.

    Raises:
        UserError: it would.
    """
    check_overwrites(study, results, _written(planned))
    check_read_weights([(list(job.input), list(job.output)) for job in planned])


def _written(planned: Iterable["SnakemakeJob"]) -> list[tuple[str, str]]:
    """(stage, folder below results/<study>) of each of Snakemake's jobs that belongs to a stage."""
    return [
        (job.rule.name, load(job.rule.name).FOLDER.format(**dict(job.wildcards.items())))
        for job in planned
        if job.rule.name in STAGES
    ]


def start_line(study: Study, results: Path, planned: Collection["SnakemakeJob"], cores: int) -> str:
    """Number and time of the jobs to run on this machine."""
    jobs = [Job(stage, str(results / folder), True) for stage, folder in _written(planned)]
    expected = forecasts(jobs, Estimates(study, results), study.config.resources, cores)
    _PLANNED.append(wall_line(expected, study, Profile(Path(), cores)))
    return _PLANNED[-1]


def took_line() -> str:
    """The time of the run beside its plan; "" without a plan, as on a cluster."""
    took = (time.time() - _BEGAN) / 60
    return f"plan:    {_PLANNED[-1]}; it took {took:.1f} minutes" if _PLANNED else ""


def check_rule_names(workflow: "Workflow") -> None:
    """Refuse threads and resources for a rule that does not exist; Snakemake ignores them.

    Raises:
        UserError: a rule does not exist. The message names the option and the rule.
    """
    known = {rule.name for rule in workflow.rules}
    settings = workflow.resource_settings
    for option, rules in (
        ("--set-threads", settings.overwrite_threads),
        ("--set-resources", settings.overwrite_resources),
    ):
        if unknown := sorted(set(rules) - known):
            raise UserError(f"{option}: no such rule: {', '.join(unknown)}")


def note_interrupts() -> None:
    """From now on list each SIGINT and SIGTERM of this process in `_INTERRUPTS`."""
    for each in (signal.SIGINT, signal.SIGTERM):
        handle = signal.getsignal(each)

        def record(number: int, frame: FrameType | None, handle: object = handle) -> None:
            _INTERRUPTS.append(number)
            handle(number, frame)

        # Snakemake's logger swallows a KeyboardInterrupt, and then only the jobs seem to have
        # failed. A shell starts background jobs with SIGINT ignored.
        if callable(handle):
            signal.signal(each, record)


def stopped_lines(workflow: "Workflow") -> list[str]:
    """The last lines of a run that did not succeed: failed jobs, and what an interrupted run keeps.

    Args:
        workflow: Snakemake's workflow, after its last job.
    """
    left = [job for job in workflow.dag.needrun_jobs() if not job.is_norun]
    logs = [(job.rule.name, Path(str(log))) for job in left for log in job.log]
    lines = failure_lines(logs, _BEGAN, interrupted=bool(_INTERRUPTS))
    if _INTERRUPTS:
        jobs = sum(not job.is_norun for job in workflow.dag.jobs)
        done = f"{jobs - len(left)} of {jobs} jobs and the finished steps of others"
        lines.append(f"interrupted: kept {done}; the same command goes on from there")
    return lines


def after_jobs(results: Path) -> None:
    """Tidy up after the last job; only in a process that holds the study, so that no job runs."""
    if _HELD:
        remove_empty_scratch(results)


def remove_empty_scratch(results: Path) -> None:
    """Remove the scratch folders of finished jobs, in which only the file of their lock is left.

    A folder with saved steps stays.
    """
    scratch = results / "scratch"
    for lock in list(scratch.rglob("lock")):
        if any(path != lock for path in lock.parent.iterdir()):
            continue
        lock.unlink()
        for folder in lock.parents:
            if not folder.is_relative_to(scratch) or any(folder.iterdir()):
                break
            folder.rmdir()


def say_last(lines: Iterable[str]) -> None:
    """Print lines when this process ends, because Snakemake ends with some lines of its own."""
    for line in reversed(list(filter(None, lines))):
        atexit.register(print, line, file=sys.stderr)
