"""The chosen study, and what the rules ask of it: paths, settings, code hashes, resources."""

import atexit
import os
import shlex
import sys
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.stages.files import episodes
from hgrpo.study.study import load_study
from hgrpo.workflow.chosen_study import STUDY_VARIABLE, chosen_study
from hgrpo.workflow.earlier_report import keep_report
from hgrpo.workflow.ending import failure_lines, finding
from hgrpo.workflow.planned import PLANNED_VARIABLE
from hgrpo.workflow.preflight import check_jobs, check_shareable
from hgrpo.workflow.rules import StudyRules, results_folder
from hgrpo.workflow.study_lock import hold_study
from hgrpo.workflow.targets import UNKNOWN, check_rules, unknown_target

# Checkouts share the stages up to SFT if snakemake is given --cache and SNAKEMAKE_OUTPUT_CACHE.
SHARED = workflow.workflow_settings.cache is not None
STUDIES = os.path.relpath(workflow.current_basedir.join("../configs/studies"))


def read_study():
    """The chosen study; a mistake in it ends snakemake with one line."""
    overrides = {key: value for key, value in config.items() if key != "study"}
    try:
        name = chosen_study(STUDIES, config.get("study"), sys.argv[1:], os.environ)
        study = load_study(f"{STUDIES}/{name}.yaml", overrides)
        if SHARED:
            check_shareable(study)
        return study
    except UserError as error:
        sys.exit(f"error: {error}")


study = read_study()
# A job on another machine cannot see the targets, and reads a project that may have been edited. It
# takes the study's name and the plan from its environment.
os.environ[STUDY_VARIABLE] = study.config.name
R = str(results_folder(study))
of = StudyRules(study, R, None if workflow.is_main_process else os.environ.get(PLANNED_VARIABLE))
if workflow.is_main_process:
    os.environ[PLANNED_VARIABLE] = of.plans()

# A job runs with the Python that runs snakemake, even if its environment is not active. Progress bars
# go to logs, where one line every ten seconds is enough.
BIN = shlex.quote(os.path.dirname(sys.executable))
shell.prefix(f"export PATH={BIN}:$PATH TQDM_MININTERVAL=10; ")


wildcard_constraints:
    method="|".join(study.methods),
    seed=r"\d+",
    round=r"\d+",


def check_needs():
    """End snakemake with one line if the jobs to run need something that is missing.

    Snakemake deletes a job's old outputs before it submits the job, so a job that fails at once
    would still cost them.
    """
    jobs = [(job.rule.name, job.wildcards.get("method")) for job in workflow.dag.needrun_jobs()]
    # With a storage provider, jobs run on machines with other packages and files.
    elsewhere = workflow.storage_settings.default_storage_provider is not None
    try:
        check_jobs(study, jobs, os.environ, elsewhere, workflow.executor_plugin.name)
    except UserError as error:
        sys.exit(f"error: {error}")


def check_rule_names():
    """End snakemake with one line if its options or the profile name an unknown rule."""
    resources = workflow.resource_settings
    known = {rule.name for rule in workflow.rules}
    try:
        check_rules("--set-threads", resources.overwrite_threads, known)
        check_rules("--set-resources", resources.overwrite_resources, known)
    except UserError as error:
        sys.exit(f"error: {error}")


# The open file that holds the study's lock.
HELD = []


def hold_lock():
    """End snakemake with one line if another one is running this study."""
    if workflow.execution_settings.lock:
        try:
            HELD.append(hold_study(Path(R)))
        except UserError as error:
            sys.exit(f"error: {error}")


def say_last(lines):
    """Print lines when everything else is printed: snakemake ends with some lines of its own."""
    for line in reversed(list(filter(None, lines))):
        atexit.register(print, line, file=sys.stderr)


def keep_earlier_report():
    """Copy the report if this run replaces it by one of fewer rounds, seeds or arms."""
    if any(job.rule.name == "report" for job in workflow.dag.needrun_jobs()):
        said = keep_report(Path(R), study.resolved())
        if said:
            print(said, file=sys.stderr)


def no_such_target(wildcards):
    """Stop with one line that suggests the nearest study or target."""
    studies = [name.removesuffix(".yaml") for name in sorted(os.listdir(STUDIES))]
    targets = [rule.name for rule in workflow.rules if not rule.has_wildcards()]
    sys.exit(f"error: {unknown_target(wildcards.target, {*studies, *targets})}")


def evaluations(methods=None):
    """Episode files of all methods, or of some."""
    return [f"{R}/{path}" for path in episodes(study, methods)]


def smoke_methods():
    """The methods that a study evaluates first, as a check that it works."""
    return study.config.smoke_wave or [study.config.reference]


def asks(stage):
    """Resources of one job of a stage; each retry asks for more memory and time."""
    needs = of.resources(stage)
    resources = {
        "mem_mb": lambda wildcards, attempt: needs.mem_mb * attempt,
        "runtime": lambda wildcards, attempt: needs.runtime * attempt,
    }
    # Kubernetes' executor reads `gpu=0` as an incomplete request for a GPU.
    return resources | ({"gpu": needs.gpu} if needs.gpu else {})


def cores(stage):
    """Threads of one job of a stage."""
    return of.resources(stage).threads


def gpus(stage):
    """GPUs of one job of a stage; `--set-resources` overrides the study."""
    instead = workflow.resource_settings.overwrite_resources.get(stage, {}).get("gpu")
    return of.resources(stage).gpu if instead is None else instead.value


def shown(files, category, caption):
    """The same files, marked for `snakemake --report`; figures of single runs stand apart."""
    marked = []
    for path in files:
        where = f"{category} of single runs" if "/runs/" in path else category
        marked.append(report(path, caption=caption, category=where, labels=labels(path)))
    return marked


def labels(path):
    """A file's name and format in Snakemake's report."""
    name, kind = os.path.splitext(os.path.basename(path))
    return {"name": name.replace("_", " "), "format": kind.removeprefix(".")}
