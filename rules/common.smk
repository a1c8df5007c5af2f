"""The study in hand, and what every rule asks of it: paths, settings, code hashes, resources."""

import os
import shlex
import sys

from hgrpo.config.read import did_you_mean
from hgrpo.errors import UserError
from hgrpo.stages.files import episodes
from hgrpo.study.study import load_study
from hgrpo.workflow.chosen_study import STUDY_VARIABLE, chosen_study
from hgrpo.workflow.preflight import check_jobs, check_shareable
from hgrpo.workflow.rules import StudyRules, results_folder

# With --cache and SNAKEMAKE_OUTPUT_CACHE, checkouts share the stages up to SFT.
SHARED = workflow.workflow_settings.cache is not None
STUDIES = os.path.relpath(workflow.current_basedir.join("../configs/studies"))


def read_study():
    """The study in hand; a mistake in it ends snakemake with one line."""
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
# A job on another machine does not see the targets: it finds the study in its environment.
os.environ[STUDY_VARIABLE] = study.config.name
R = str(results_folder(study))
of = StudyRules(study, R)

# A job runs with the Python that runs snakemake, in an active environment or not. Its progress bar
# goes to a log, where a line every ten seconds says enough.
BIN = shlex.quote(os.path.dirname(sys.executable))
shell.prefix(f"export PATH={BIN}:$PATH TQDM_MININTERVAL=10; ")


wildcard_constraints:
    method="|".join(study.methods),
    seed=r"\d+",
    round=r"\d+",


def check_needs():
    """End snakemake with one line if the jobs to run would miss something.

    Before it submits a job, Snakemake deletes what that job made last time.
    """
    jobs = [(job.rule.name, job.wildcards.get("method")) for job in workflow.dag.needrun_jobs()]
    # Where results go to a store, jobs run on machines on which other things are installed.
    elsewhere = workflow.storage_settings.default_storage_provider is not None
    try:
        check_jobs(study, jobs, os.environ, elsewhere, workflow.executor_plugin.name)
    except UserError as error:
        sys.exit(f"error: {error}")


def no_such_target(wildcards):
    """Input of no job: names the studies and the other targets."""
    studies = [name.removesuffix(".yaml") for name in sorted(os.listdir(STUDIES))]
    targets = [rule.name for rule in workflow.rules if not rule.has_wildcards()]
    name = wildcards.target
    sys.exit(f"error: {name}: no such target{did_you_mean(name, {*studies, *targets})}")


def evaluations(methods=None):
    """Episodes of every evaluation, or of those of some methods."""
    return [f"{R}/{path}" for path in episodes(study, methods)]


def smoke_methods():
    """The methods that a study plays first, to see whether all is well."""
    return study.config.smoke_wave or [study.config.reference]


def asks(stage):
    """Resources of one job of a stage; where a profile has retries, each asks for more."""
    needs = of.resources(stage)
    resources = {
        "mem_mb": lambda wildcards, attempt: needs.mem_mb * attempt,
        "runtime": lambda wildcards, attempt: needs.runtime * attempt,
    }
    # Kubernetes' executor takes `gpu=0` for a GPU job that says too little.
    return resources | ({"gpu": needs.gpu} if needs.gpu else {})


def cores(stage):
    """Threads of one job of a stage."""
    return of.resources(stage).threads


def gpus(stage):
    """GPUs of a job of a stage: the study's, or what `--set-resources` says in their place."""
    instead = workflow.resource_settings.overwrite_resources.get(stage, {}).get("gpu")
    return of.resources(stage).gpu if instead is None else instead.value


def shown(files, category):
    """Files that `snakemake --report` holds."""
    return [report(path, category=category, labels=labels(path)) for path in files]


def labels(path):
    """What a file is called in Snakemake's report."""
    name, kind = os.path.splitext(os.path.basename(path))
    return {"name": name.replace("_", " "), "format": kind.removeprefix(".")}
