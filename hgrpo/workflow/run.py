"""What happens around the jobs of a run: checks before the first one, words after the last one."""

import atexit
import logging
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

from hgrpo.errors import UserError
from hgrpo.provenance import revision
from hgrpo.stages.order import STAGES, load
from hgrpo.study.study import Study
from hgrpo.workflow.earlier_report import keep_report
from hgrpo.workflow.exchange.overwrites import check_overwrites
from hgrpo.workflow.looking import check_looking
from hgrpo.workflow.planning.estimates import Estimates
from hgrpo.workflow.planning.forecast import forecasts, total, wall_minutes
from hgrpo.workflow.planning.jobs import Job
from hgrpo.workflow.planning.profile import Profile
from hgrpo.workflow.planning.tables import wall_line
from hgrpo.workflow.preflight import check_given_adapter, check_jobs, other_revision_line
from hgrpo.workflow.read_weights import check_read_weights
from hgrpo.workflow.rules import StudyRules
from hgrpo.workflow.study_lock import hold_study, is_running
from hgrpo.workflow.targets import check_paths, check_rules, check_wildcards, target_paths

if TYPE_CHECKING:
    from snakemake.jobs import Job as SnakemakeJob
    from snakemake.workflow import Workflow

T, R = TypeVar("T"), TypeVar("R")
# Settings within a command: one quoted word, up to the next option or the log.
_SETTINGS = re.compile(r"--config '\{.*?\}' (?=--|>|$)", re.DOTALL)
# A wildcard in a rule's path, which Snakemake writes with its pattern.
_CONSTRAINED = re.compile(r"\{(\w+)[^}]*\}")
# The open files that hold the locks of this process.
_HELD: list[IO[str]] = []


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


def draw_if_asked(arguments: Sequence[str]) -> None:
    """Start snakemake again with `--forcerun=figures` if the target `figures` is asked for.

    Snakemake makes only what is out of date, but a user who asks for figures wants them drawn. A
    new start is necessary because Snakemake has already read its command line.

    Args:
        arguments: words of the command, without the program.
    """
    forced = any(word.startswith(("--forcerun", "-R")) for word in arguments)
    if "figures" in arguments and not forced:
        command = [sys.executable, "-m", "snakemake", "--forcerun=figures", *arguments]
        os.execv(sys.executable, command)


class ShortCommands(logging.Filter):
    """In Snakemake's messages about a failed job, cuts the settings out of the command.

    They are many thousand characters of JSON; `snakemake -n -p` prints them whole.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.ERROR:
            for name in ("shellcmd", "msg"):
                if isinstance(text := getattr(record, name, None), str):
                    setattr(record, name, _SETTINGS.sub("--config '{...}' ", text))
        return True


class NothingToDo(logging.Filter):
    """Calls a function when Snakemake says that nothing is to be done: it has no hook for this.

    Args:
        message: Snakemake's message.
        call: the function.
    """

    def __init__(self, message: str, call: Callable[[], None]):
        super().__init__()
        self._message, self._call = message, call

    def filter(self, record: logging.LogRecord) -> bool:
        if record.msg == self._message:
            self._call()
        return True


class OwnLockMessage(logging.Filter):
    """Says in the project's words that another run, or a killed one, has locked a study's files.

    Args:
        study: name of the study.
        results: results/<study>.
    """

    def __init__(self, study: str, results: Path):
        super().__init__()
        self._study, self._results = study, results

    def filter(self, record: logging.LogRecord) -> bool:
        if "Directory cannot be locked" in str(record.msg):
            why = (
                "another snakemake is running this study: wait for it"
                if is_running(self._results)
                else "a snakemake that was killed has left its lock: "
                f"`make unlock STUDY={self._study}`, then the same command again"
            )
            record.msg = f"error: {self._results}: {why}"
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
    profile = Profile(Path(), cores)
    return wall_line(total("all", expected, None), wall_minutes(expected, study, profile), profile)


def warn_at_end_of_dry_run(workflow: "Workflow", study: Study, results: Path) -> None:
    """After a dry run, print why a real run would refuse to start because of its results.

    Snakemake calls no hook in a dry run, so this happens when the process ends.
    """

    def warn() -> None:
        if workflow.dryrun and workflow.dag is not None:
            try:
                # At the end of a dry run, Snakemake calls all its jobs finished.
                planned = workflow.dag.needrun_jobs(exclude_finished=False)
                _check_results(study, results, list(planned))
            except UserError as error:
                print(f"error: {error}", file=sys.stderr)

    atexit.register(warn)


def check_targets(
    workflow: "Workflow", arguments: Sequence[str], rules: StudyRules, studies: Collection[str]
) -> None:
    """Refuse a target that is a rule with wildcards, or a path that no rule makes.

    Args:
        workflow: Snakemake's workflow with all its rules.
        arguments: words of the command, without the program.
        rules: the chosen study.
        studies: names of all studies.

    Raises:
        UserError: there is such a target. For a path, the message suggests the nearest.
    """

    def made(path: str) -> bool:
        return any(rule.is_producer(path) for rule in workflow.rules)

    files = rules.files()
    of_many_jobs = {
        rule.name: next(
            filter(rule.is_producer, files), _CONSTRAINED.sub(r"<\1>", str(rule.output[0]))
        )
        for rule in workflow.rules
        if rule.has_wildcards()
    }
    check_wildcards(arguments, of_many_jobs)
    check_paths(target_paths(arguments), made, studies, files)


def check_rule_names(workflow: "Workflow") -> None:
    """Refuse options, on the command line or in the profile, for a rule that does not exist.

    Raises:
        UserError: a rule does not exist. The message names the option and the rule.
    """
    known = {rule.name for rule in workflow.rules}
    settings = workflow.resource_settings
    check_rules("--set-threads", settings.overwrite_threads, known)
    check_rules("--set-resources", settings.overwrite_resources, known)


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
