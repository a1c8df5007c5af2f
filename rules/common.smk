"""The chosen study, and what the rules ask of it: paths, settings, code hashes, resources."""

import os
import re
import shlex
import sys
from pathlib import Path

from hgrpo.stages.files import EVERY_SEED, episodes
from hgrpo.study.axis import target
from hgrpo.study.overrides import OF_THE_RUN
from hgrpo.study.study import load_study
from hgrpo.workflow.preflight import check_bucket
from hgrpo.workflow.chosen_study import STUDY_VARIABLE, chosen_study
from hgrpo.workflow.code_version import package_digest
from hgrpo.workflow.ending import page_lines
from hgrpo.workflow.exchange.imports import imported_parts
from hgrpo.workflow.plan_check import PACKAGE_VARIABLE, PLANNED_VARIABLE
from hgrpo.workflow.preflight import set_variables
from hgrpo.workflow.reuse import REUSE_VARIABLE, switch
from hgrpo.workflow.rules import StudyRules, results_folder
from hgrpo.workflow.run import (
    after_jobs,
    before_jobs,
    check_rule_names,
    note_interrupts,
    one_line_errors,
    say_last,
    start_line,
    stopped_lines,
    told,
    took_line,
)
from hgrpo.workflow.watch.jobs import study_jobs
from hgrpo.workflow.watch.terminal import show_progress

# Checkouts share the stages up to SFT if snakemake is given --cache and SNAKEMAKE_OUTPUT_CACHE.
SHARED = workflow.workflow_settings.cache is not None
STUDIES = os.path.relpath(workflow.current_basedir.join("../configs/studies"))


# A thread of a job that waits for the other gives its core away. By default it spins, and beside other
# work a job of two threads then takes ten times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# hash() of a text is the same in every job.
os.environ.update(PYTHONHASHSEED="0")

with one_line_errors():
    # `study=` with nothing behind it is no request for the default study.
    asked = (config["study"] or "") if "study" in config else None
    study = load_study(
        f"{STUDIES}/{chosen_study(STUDIES, asked, sys.argv[1:], os.environ)}.yaml",
        {key: value for key, value in config.items() if key not in OF_THE_RUN},
    )
    reuses = switch(config.get("reuse", "yes"))
# A job on another machine does not know the run's targets, and the project may have been edited
# since the run was planned. So the job takes the study's name and the plan from its environment.
os.environ[STUDY_VARIABLE] = study.config.name
R = str(results_folder(study))
# Hashed before the code of any stage: after an edit in between, jobs hash their code themselves.
if workflow.is_main_process:
    os.environ[PACKAGE_VARIABLE] = package_digest()
of = StudyRules(study, R, None if workflow.is_main_process else os.environ.get(PLANNED_VARIABLE))
if workflow.is_main_process:
    with one_line_errors():
        os.environ[PLANNED_VARIABLE] = of.plans()
# Files in a bucket cannot be seen from here.
ELSEWHERE = workflow.storage_settings.default_storage_provider is not None
if ELSEWHERE:
    if workflow.is_main_process:
        with one_line_errors():
            check_bucket(workflow)
    # Snakemake makes a secret of these for the pods, and deletes it after the run.
    workflow.register_envvars(*set_variables(study, os.environ))
# A job takes its results from another study if an equal job has finished there.
os.environ[REUSE_VARIABLE] = R if reuses and not ELSEWHERE else ""

# A job runs with the Python that runs snakemake, even if its environment is not active.
BIN = shlex.quote(os.path.dirname(sys.executable))
shell.prefix(f"export PATH={BIN}:$PATH; ")


def any_of(names):
    """A wildcard's constraint: one of the names or numbers; without any, no value matches."""
    return "|".join(re.escape(str(name)) for name in names) or "(?!)"


# No rule makes files of an arm, a seed or a round that the study does not have.
wildcard_constraints:
    method=any_of(study.methods),
    seed=any_of(study.config.seeds),
    round=any_of(range(study.config.rounds + 1)),


TRAINED = any_of(study.step_trajectories)
TRAINED_ROUNDS = any_of(range(1, study.config.rounds + 1))


def inputs(stage):
    """A function for a rule's `input` that ends snakemake with one line if there are none."""
    return told(of.inputs(stage))


def contents(stage):
    """A function for a rule's `params`: the part of the cache's key that covers the user's files."""
    given = of.contents(stage)

    def digest(wildcards, output):
        with one_line_errors("--cache: "):
            return given(wildcards, output) if SHARED else None

    return digest


def wanted_truths(wildcards):
    """The study's truth tables; stop with one line if it asks for none."""
    return of.truths() or sys.exit(
        f"error: {study.config.name}: no section `truth`; `truth: {{}}` in its file measures it"
    )


def wanted_gradients(wildcards):
    """The page about gradients; stop with one line if the study measures none."""
    if of.gradients():
        return of.outputs("gradients_page")["page"]
    sys.exit(
        f"error: {study.config.name}: no trained arm, or no section `gradients`; "
        "see docs/keys.md#study-gradients"
    )


def evaluations(methods=None):
    """Episode files of all methods, or of some."""
    return [f"{R}/{path}" for path in episodes(study, methods)]


def with_config(files):
    """Files that a target asks for, with the study's config.yaml, which cost and monitor read."""
    return [*of.outputs("study_config").values(), *files]


def evaluations_of_axis(axis):
    """A function for a rule's `input`: episode files of an axis's arms; stops if none was chosen."""
    arms = set(study.axis_arms[axis].values())

    def chosen(wildcards):
        return with_config(
            evaluations(arms)
            or sys.exit(
                f"error: {target(axis)}: none of its arms is among the methods; it has "
                f"{', '.join(study.axis_arms[axis].values())}"
            )
        )

    return chosen


def smoke_methods():
    """The methods that a study evaluates first, as a check that it works."""
    first = study.config.smoke_wave or [study.config.reference]
    return [method for method in study.methods if method in first]


def asks(stage):
    """Resources of one job of a stage; each retry asks for more memory and time."""
    needs = of.resources(stage)
    resources = {
        "mem_mb": lambda wildcards, attempt: needs.mem_mb * attempt,
        "runtime": lambda wildcards, attempt: needs.runtime * attempt,
    }
    # Kubernetes' executor reads `gpu=0` as an incomplete request for a GPU.
    return resources | ({"gpu": needs.gpu} if needs.gpu else {})


def early(priority):
    """A function for a rule's `priority`: higher for the longest runs, of the first seed.

    Some methods play on from many turns to compute their credit, and their runs take several times
    as long as others. If such a run starts last, the other cores have nothing to do in the end.
    """

    def of_job(wildcards):
        first = wildcards.seed == str(study.config.seeds[0])
        return 30 if first and study.methods[wildcards.method].credit.declared.plays else priority

    return of_job


def cores(stage):
    """Threads of one job of a stage."""
    return of.resources(stage).threads


def gpus(stage):
    """GPUs of one job of a stage; `--set-resources` overrides the study."""
    # Without dict(), a missing resource would look like a resource without a value.
    instead = dict(workflow.resource_settings.overwrite_resources.get(stage, {}))
    return instead["gpu"].value if "gpu" in instead else of.resources(stage).gpu


def imported_here():
    """What of the study colleagues gave, as JSON for the report; nothing in a bucket."""
    with one_line_errors():
        return "[]" if ELSEWHERE else imported_parts(study, Path(R))


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
