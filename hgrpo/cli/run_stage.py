"""Run a job of a stage: its module declares the options and holds the help text.

`--job FILE` reads all of them, and the settings, from the file that the pipeline wrote for the job,
and records what the result was made from beside it.
"""

import argparse
import json
import random
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields, replace
from pathlib import Path
from types import ModuleType

import numpy as np
from pydantic import BaseModel

from hgrpo.cli.entry import command_parser, read_config
from hgrpo.command import run
from hgrpo.config.read import validate
from hgrpo.errors import UserError
from hgrpo.games.streams import key
from hgrpo.progress import written_progress
from hgrpo.stages.order import load, runs_a_model
from hgrpo.stages.paths import Job, option
from hgrpo.store.code import code_hash, load_hashes, roots
from hgrpo.store.entry import link_planned, record, take_equal
from hgrpo.store.plan import HASHES, STORE

# Option -> type and help.
_JOB_OPTIONS = {
    "method": (str, "name of the arm"),
    "seed": (int, "of the run; in stages before the runs, of the environment's draws (then 0)"),
    "round": (int, "number of the round, from 1; round 0 is the SFT policy"),
}
# Keys of a config.yaml that describe the run that wrote it. They are not settings.
_RECORDED = {"provenance", "packages", "code", "python", "revision", "hardware"}


def main() -> None:
    """Run the stage that the first argument names."""
    run_stage(load(sys.argv[1]), sys.argv[2:])


def run_stage(stage: ModuleType, words: Sequence[str]) -> None:
    """Run a stage, a module of `hgrpo.stages`, with the arguments `words`.

    Raises:
        UserError: the settings have a mistake in them, the job's code is not the one that it was
            planned with, or the stage fails.
    """
    if words[:1] == ["--job"] and len(words) > 1:
        run_planned(stage, Path(words[1]), words[2:])
        return
    args = _parser(stage).parse_args(words)
    settings = read_settings(stage, read_config(args.config), _job(stage, args))
    code = code_hash(roots(_name(stage), settings.model_dump(mode="json")))
    _run(stage, settings, args, code)


def run_planned(stage: ModuleType, file: Path, words: Sequence[str]) -> None:
    """Run a job of the pipeline, unless one with the same inputs has finished.

    Args:
        stage: the stage.
        file: results/store/<key>/job.json.
        words: further arguments, which change no result.
    """
    entry = file.parent
    job = json.loads(file.read_bytes())
    load_hashes(STORE / HASHES)
    settings = json.loads((STORE / "settings" / f"{job['settings']}.json").read_bytes())
    _check_code(stage, settings, job["code"])
    with written_progress(Path(job["log"])):
        if not take_equal(job, entry):
            _run_and_record(stage, job, settings, words)
    link_planned(job)


def _run_and_record(
    stage: ModuleType, job: Mapping, settings: Mapping, words: Sequence[str]
) -> None:
    began, entry = time.time(), STORE / job["key"]
    config = str(STORE / "settings" / f"{job['settings']}.json")
    args = _parser(stage).parse_args(["--config", config, *job["words"], *words])
    _run(stage, read_settings(stage, settings, _job(stage, args)), args, job["code"])
    # What a job imports or reads late may have been edited while it ran.
    _check_code(stage, settings, job["code"])
    shutil.rmtree(entry / "unfinished", ignore_errors=True)
    record(job, entry, began)


def _check_code(stage: ModuleType, settings: Mapping, planned: str) -> None:
    if code_hash(roots(_name(stage), settings)) != planned:
        raise UserError(
            "the code that this job runs has changed since the run was planned; start the run "
            "again, and it plans anew"
        )


def _run(stage: ModuleType, settings: BaseModel, args: argparse.Namespace, code: str) -> None:
    job = replace(_job(stage, args), code=code)
    paths = {field.name: getattr(args, field.name) for field in fields(stage.Paths)}
    _seed_globals(_name(stage), job)
    try:
        stage.run(settings, job, stage.Paths(**paths))
    except SystemExit as ended:  # a round that several processes share ends in this way
        if ended.code:
            raise


def _job(stage: ModuleType, args: argparse.Namespace) -> Job:
    return Job(**{name: getattr(args, name) for name in stage.JOB})


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
    sections = dict(loaded)
    if "from_whole_study" in vars(stage):
        sections = stage.from_whole_study(sections, job)
    model = stage.Settings
    others = sections.keys() - model.model_fields
    if others and model.model_config.get("extra") != "allow":
        # Importing it takes as long as reading a stage's settings, and the pipeline gives no more.
        from hgrpo.study.config import StudyConfig

        others &= StudyConfig.model_fields.keys() | _JOB_OPTIONS.keys() | _RECORDED
        sections = {name: value for name, value in sections.items() if name not in others}
    return validate(model, sections, "--config")


if __name__ == "__main__":
    run(main)
