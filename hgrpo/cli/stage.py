"""The command of every stage; the stage's module declares the options and holds the help text."""

import argparse
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields, replace
from pathlib import Path
from types import ModuleType

import numpy as np
from pydantic import BaseModel

from hgrpo.cli.entry import command_parser, read_config
from hgrpo.command import run
from hgrpo.config.read import did_you_mean, validate
from hgrpo.errors import UserError
from hgrpo.progress import written_progress
from hgrpo.stages.job import Job
from hgrpo.stages.order import runs_a_model
from hgrpo.stages.paths import option
from hgrpo.streams import key
from hgrpo.workflow.code_version import clear_caches, code_of, package_digest
from hgrpo.workflow.plan_check import PACKAGE_VARIABLE, check_plan, planned_code
from hgrpo.workflow.reuse import reusable_job

_JOB_OPTIONS = {
    "method": (str, "name of the arm"),
    "seed": (int, "of the run; in stages before the runs, of the environment's draws (then 0)"),
    "round": (int, "number of the round, from 1; round 0 is the SFT policy"),
}
# Keys of a config.yaml that describe the run that wrote it. They are not settings.
_RECORDED = {"provenance", "packages", "code", "python", "revision", "hardware"}


def run_stage(stage: ModuleType) -> None:
    """Parse the process's arguments for a stage, a module of `hgrpo.stages`, and run it."""
    run(lambda: parse_and_run(stage))


def parse_and_run(stage: ModuleType, words: Sequence[str] | None = None) -> None:
    """Run a stage with the arguments `words`; None takes the process's own arguments.

    Raises:
        UserError: `--config` has a mistake in it, the job was planned with other settings or code,
            its code was edited while it ran, or the stage fails.
    """
    args = _parser(stage).parse_args(words)
    with written_progress(args.progress):
        _run(stage, args)


def _run(stage: ModuleType, args: argparse.Namespace) -> None:
    job = Job(**{name: getattr(args, name) for name in stage.JOB})
    given = read_config(args.config)
    settings = read_settings(stage, given, job)
    job = replace(job, code=_code(stage, settings, args.planned))
    check_plan(args.planned, given, job.code)
    paths = {field.name: getattr(args, field.name) for field in fields(stage.Paths)}
    reusable = reusable_job(stage, settings, job, args.reads, paths["out"])
    if reusable is not None and reusable.take():
        return
    _seed_globals(_name(stage), job)
    try:
        stage.run(settings, job, stage.Paths(**paths))
    except SystemExit as ended:  # a round that several processes share ends in this way
        if ended.code:
            raise
    # What a job imports or reads late may have been edited while it ran.
    clear_caches()
    check_plan(args.planned, given, _code(stage, settings, args.planned))
    if reusable is not None:
        reusable.record()


def _code(stage: ModuleType, settings: BaseModel, planned: str) -> str:
    """Hash of the job's code, from the plan if the package is as it was then."""
    code = planned_code(planned, os.environ.get(PACKAGE_VARIABLE), package_digest())
    return code or code_of(_name(stage), settings.model_dump(mode="json"))


def _seed_globals(stage: str, job: Job) -> None:
    """Seed what assigners and games draw from if they use no stream: each job draws others."""
    seed = key(stage, job.method, job.seed, job.round) % 2**32
    random.seed(seed)
    np.random.seed(seed)
    if runs_a_model(stage):
        import torch

        torch.manual_seed(seed)


def _name(stage: ModuleType) -> str:
    return stage.__name__.rpartition(".")[2]


def _parser(stage: ModuleType) -> argparse.ArgumentParser:
    parser = command_parser(stage.__doc__)
    parser.prog = f"python -m hgrpo.cli.{_name(stage)}"
    parser.add_argument(
        "--config",
        required=True,
        help="the stage's settings: JSON text, or the path of a JSON or YAML file",
    )
    parser.add_argument(
        "--planned", default="", help="hashes with which the pipeline planned the job"
    )
    parser.add_argument(
        "--reads", type=Path, nargs="*", default=[], help="input files that make equal jobs equal"
    )
    parser.add_argument(
        "--progress", type=Path, metavar="LOG", help="write progress beside this log, draw no bars"
    )
    for name in stage.JOB:
        kind, description = _JOB_OPTIONS[name]
        needed = f"{{{name}}}" in stage.FOLDER
        parser.add_argument(
            f"--{name}", type=kind, required=needed, default=kind(), help=description
        )
    for declared in fields(stage.Paths):
        _add_option(parser, declared)
    return parser


def _add_option(parser: argparse.ArgumentParser, declared: Field) -> None:
    about = declared.metadata
    if about.get("positional"):
        parser.add_argument(declared.name, type=Path, nargs="+", help=about["description"])
        return
    many = {"nargs": "*" if about["optional"] else "+"} if about["many"] else {}
    parser.add_argument(
        option(declared),
        type=about.get("type", Path),
        required=not about["optional"],
        default=[] if about["many"] else about.get("default"),
        help=about["description"],
        **many,
    )


def read_settings(stage: ModuleType, loaded: Mapping, job: Job) -> BaseModel:
    """Check a stage's settings: `loaded` holds only these, or is a whole resolved study.

    Raises:
        UserError: a section is missing, unknown, or has a mistake in it.
    """
    given = dict(loaded)
    if "from_whole_study" in vars(stage):
        given = stage.from_whole_study(given, job)
    model = stage.Settings
    if model.model_config.get("extra") == "allow":
        return validate(model, given, "--config")
    other = given.keys() - model.model_fields - _JOB_OPTIONS.keys() - _RECORDED
    if other:
        # Importing it takes as long as reading a stage's settings, and the pipeline gives no more.
        from hgrpo.study.study import StudyConfig

        for name in other - StudyConfig.model_fields.keys():
            nearest = did_you_mean(name, set(model.model_fields))
            raise UserError(f"--config: unknown key {name!r}{nearest}")
    for name, field in model.model_fields.items():
        if field.is_required() and name not in given:
            raise UserError(f"--config: key {name!r} is missing")
    return validate(model, {k: v for k, v in given.items() if k in model.model_fields}, "--config")
