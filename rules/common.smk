"""The selected study, its plan, and functions that several rules share."""

import os
import re
import shlex
import sys
from pathlib import Path

from hgrpo.stages.files import EVERY_SEED, episodes, gradient_rounds, truth_files
from hgrpo.study.axis import target
from hgrpo.study.overrides import OF_THE_RUN
from hgrpo.study.study import load_study
from hgrpo.store.plan import KEY, Plan
from hgrpo.workflow.preflight import set_variables
from hgrpo.workflow.rules import StudyRules
from hgrpo.workflow.run import Run, one_line_errors

STUDIES = os.path.relpath(workflow.current_basedir.join("../configs/studies"))
# Whether results are in a bucket instead of on a local disk.
ELSEWHERE = workflow.storage_settings.default_storage_provider is not None

if ELSEWHERE and not workflow.is_main_process and not os.path.lexists("results"):
    # In a Kubernetes pod, link results/ to Snakemake's local copies of files in the bucket.
    copies = workflow.storage_settings
    place = Path(copies.local_storage_prefix, copies.default_storage_provider)
    place = place / copies.default_storage_prefix.partition("://")[2] / "results"
    place.mkdir(parents=True)
    Path("results").symlink_to(place)

with one_line_errors():
    study = load_study(
        f"{STUDIES}/{config.get('study', 'bakeoff') or ''}.yaml",
        {key: value for key, value in config.items() if key not in OF_THE_RUN},
    )
    plan = Plan(study)
    of = StudyRules(plan, for_one_job=not workflow.is_main_process)
    run = Run(of, ELSEWHERE)


# Kubernetes pods receive API keys of judges as a secret, which Snakemake deletes after the run.
envvars:
    *(set_variables(study, os.environ) if ELSEWHERE else ()),


# Run jobs with the Python that runs snakemake, even if its environment is not active. With PASSIVE,
# waiting threads yield their core. By default, they spin, which makes a job with two threads ten
# times slower on a busy machine. PYTHONHASHSEED makes hash() of a string the same in all jobs.
BIN = shlex.quote(os.path.dirname(sys.executable))
shell.prefix(f"export PATH={BIN}:$PATH PYTHONHASHSEED=0 OMP_WAIT_POLICY=PASSIVE; ")


def any_of(names):
    """Wildcard constraint that matches exactly the given names or numbers."""
    return "|".join(re.escape(str(name)) for name in names) or "(?!)"


# Restrict wildcards to the study's arms, seeds and rounds.
wildcard_constraints:
    key=KEY,
    method=any_of(study.methods),
    seed=any_of(study.config.seeds),
    round=any_of(range(study.config.rounds + 1)),


TRAINED = any_of(study.step_trajectories)
TRAINED_ROUNDS = any_of(range(1, study.config.rounds + 1))


def files(stage):
    """Input function of a stage's rule."""
    return one_line_errors()(of.inputs(stage))


def command(stage):
    """Params function of a stage's rule; returns the path of the job's job.json."""
    return one_line_errors()(of.command(stage))


def evaluations(methods=None):
    """Episode files of `methods` (default: all), and config.yaml for `hgrpo.cli.cost`."""
    return of.stored(["config.yaml", *episodes(study, methods)])


FIRST = set(study.config.smoke_wave or [study.config.reference])


def labelled(paths, category, caption):
    """Mark files for `snakemake --report`; figures of single runs are in a separate category."""
    marked = []
    for path in paths:
        where = f"{category} of single runs" if "/runs/" in path else category
        name, kind = os.path.splitext(os.path.basename(path))
        labels = {"name": name.replace("_", " "), "format": kind.removeprefix(".")}
        marked.append(report(path, caption=caption, category=where, labels=labels))
    return marked
