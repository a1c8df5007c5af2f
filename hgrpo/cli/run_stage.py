"""Run a job of a stage; the stage's module defines the options and the help text.

With `--job FILE`, settings and options are read from a job.json that the pipeline wrote. The record
of the result, made.json, is written to the same folder.
"""

import argparse
import json
import random
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType

import numpy as np
from pydantic import BaseModel

from hgrpo.cli.entry import command_parser, read_config
from hgrpo.command import run
from hgrpo.config.canonical import settings_digest
from hgrpo.config.read import validate
from hgrpo.errors import UserError
from hgrpo.games.streams import key
from hgrpo.progress import written_progress
from hgrpo.stages.order import load, runs_a_model
from hgrpo.stages.paths import Job, option
from hgrpo.store.code import code_hash, roots
from hgrpo.store.entry import link_planned, record, take_equal, versions
from hgrpo.store.lock import locked
from hgrpo.store.plan import STORE

# Option -> type and help.
_JOB_OPTIONS = {
    "method": (str, "name of the arm"),
    "seed": (int, "seed of the run; in stages before the runs, seed of the environment (0)"),
    "round": (int, "number of the round, from 1; round 0 is the SFT policy"),
}
# Keys of config.yaml that are not settings, but information about the job.
_RECORDED = {"provenance", "packages", "code", "python", "revision", "hardware"}


def main() -> None:
    """Run the stage given by the first argument."""
    run_stage(load(sys.argv[1]), sys.argv[2:])


def run_stage(stage: ModuleType, words: Sequence[str]) -> None:
    """Run a stage, a module of `hgrpo.stages`, with the arguments `words`.

    Raises:
        UserError: the settings are invalid, the code has changed since the job was planned, or the
            stage fails.
    """
    if words[:1] == ["--job"] and len(words) > 1:
        run_planned(stage, Path(words[1]), words[2:])
        return
    args = _parser(stage).parse_args(words)
    settings = read_settings(stage, read_config(args.config), _job(stage, args))
    code = code_hash(roots(_name(stage), settings.model_dump(mode="json")))
    _run(stage, settings, args, code)


@locked()
def run_planned(stage: ModuleType, file: Path, words: Sequence[str]) -> None:
    """Run the job in results/store/<key>/job.json, or copy the results of an identical job.

    `words` are additional arguments, which must not affect results.
    """
    began, entry = time.time(), file.parent
    job = json.loads(file.read_bytes())
    config = str(STORE / "settings" / f"{job['settings']}.json")
    settings = read_config(config)
    if settings_digest(settings) != job["settings"]:
        raise UserError(f"{config}: the file was edited; start the run again to restore it")
    _check_code(stage, settings, job["code"])
    versions(job)  # fail before the work starts
    args = _parser(stage).parse_args(["--config", config, *job["words"], *words])
    with written_progress(Path(job["log"])):
        checked = read_settings(stage, settings, _job(stage, args))
        if _is_child(stage):  # its parent writes the record
            _run(stage, checked, args, job["code"])
        elif not take_equal(job, entry):
            _run(stage, checked, args, job["code"])
            # Check again, because a module may have been edited before the job imported it.
            _check_code(stage, settings, job["code"])
            record(job, entry, began)
            shutil.rmtree(entry / "unfinished", ignore_errors=True)
    link_planned(job)


def _check_code(stage: ModuleType, settings: Mapping, planned: str) -> None:
    if code_hash(roots(_name(stage), settings)) != planned:
        raise UserError(
            "the code of this job has changed since the run was planned; undo the edit or run again"
        )


def _run(stage: ModuleType, settings: BaseModel, args: argparse.Namespace, code: str) -> None:
    job = replace(_job(stage, args), code=code)
    paths = {field.name: getattr(args, field.name) for field in fields(stage.Paths)}
    _seed_globals(_name(stage), job)
    try:
        stage.run(settings, job, stage.Paths(**paths))
    except SystemExit as ended:  # the main process of a multi-process round calls sys.exit
        if ended.code:
            raise


def _is_child(stage: ModuleType) -> bool:
    if not runs_a_model(_name(stage)):
        return False
    from hgrpo.learning.ranks import is_child

    return is_child()


def _job(stage: ModuleType, args: argparse.Namespace) -> Job:
    return Job(**{name: getattr(args, name) for name in stage.JOB})


def _seed_globals(stage: str, job: Job) -> None:
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
    parser.prog = f"python -m hgrpo.cli.stage {_name(stage)}"
    parser.add_argument(
        "--config",
        required=True,
        help="the stage's settings: JSON text, or the path of a JSON or YAML file",
    )
    for name in stage.JOB:
        kind, about = _JOB_OPTIONS[name]
        required = f"{{{name}}}" in stage.FOLDER
        parser.add_argument(f"--{name}", type=kind, required=required, default=kind(), help=about)
    for declared in fields(stage.Paths):
        about = declared.metadata
        many = {"nargs": "*" if about["optional"] else "+"} if about["many"] else {}
        parser.add_argument(
            option(declared),
            type=about.get("type", Path),
            required=not about["optional"],
            default=[] if about["many"] else about.get("default"),
            help=about["description"],
            **many,
        )
    return parser


def read_settings(stage: ModuleType, loaded: Mapping, job: Job) -> BaseModel:
    """Validate a stage's settings; ignore settings of the study that the stage does not use."""
    sections = dict(loaded)
    if "from_whole_study" in vars(stage):
        sections = stage.from_whole_study(sections, job)
    model = stage.Settings
    others = sections.keys() - model.model_fields
    if others and model.model_config.get("extra") != "allow":
        # Imported here because the import is slow and only required for whole studies.
        from hgrpo.study.config import StudyConfig

        others &= StudyConfig.model_fields.keys() | _JOB_OPTIONS.keys() | _RECORDED
        sections = {name: value for name, value in sections.items() if name not in others}
    return validate(model, sections, "--config")


if __name__ == "__main__":
    run(main)
