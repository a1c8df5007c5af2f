"""What Snakemake can know to be missing before the first job runs."""

import subprocess
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from hgrpo.config.user_path import user_path
from hgrpo.envs import kinds as environments
from hgrpo.errors import UserError
from hgrpo.learning.method import MethodConfig
from hgrpo.study.study import Study


def check_jobs(
    study: Study,
    jobs: Collection[tuple[str, str | None]],
    environment: Mapping[str, str],
    elsewhere: bool,
    executor: str,
) -> None:
    """Refuse to start jobs that would stop because something is missing.

    Args:
        study: in hand.
        jobs: (stage, method or None) of each job to run.
        environment: variables of the process.
        elsewhere: jobs run on machines with other files and packages, so neither is looked for.
        executor: name of Snakemake's executor.

    Raises:
        UserError: naming what is missing.
    """
    stages = {stage for stage, _ in jobs}
    trained = dict.fromkeys(method for stage, method in jobs if stage == "rl_round" and method)
    check_variables([study.methods[method] for method in trained], environment)
    if not elsewhere:
        check_user_files(study, stages)
        if stages & {"rl_round", "evaluate"}:
            study.config.engine.engine.check_installed()
    if executor == "slurm":
        check_slurm()


def missing_variables(method: MethodConfig, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that a method's credit needs and that are not set -> what to say about each."""
    if not method.train:
        return {}
    needed = method.credit.declared.environment_variables
    return {name: said for name, said in needed.items() if not environment.get(name, "").strip()}


def check_variables(methods: Iterable[MethodConfig], environment: Mapping[str, str]) -> None:
    """Refuse to start rounds whose credit needs a variable that is not set, such as a judge's key.

    Raises:
        UserError: naming method and variable.
    """
    for method in methods:
        for said in missing_variables(method, environment).values():
            raise UserError(f"{method.name}: {said}")


@dataclass(frozen=True)
class _UserPath:
    """A path of the user's that a stage reads.

    Attributes:
        stage: the stage.
        key: the setting that gives the path.
        path: as the setting gives it.
        made: the stage makes what is missing, so that only its variables must be set.
        holds: a file that must lie in the folder; "" if the path itself is enough.
        hint: what else to say if nothing is there.
    """

    stage: str
    key: str
    path: str
    made: bool = False
    holds: str = ""
    hint: str = ""


def check_user_files(study: Study, stages: Collection[str]) -> None:
    """Refuse to start stages that would not find the user's own files.

    Raises:
        UserError: naming config, key and path: a variable in it is not set, or nothing is there.
    """
    for file in _user_paths(study):
        if file.stage in stages:
            place = user_path(file.path, file.key)
            if not file.made and not (place / file.holds).exists():
                hint = f"; {file.hint}" if file.hint and not place.exists() else ""
                raise UserError(f"{file.key}: {file.path}: there is no {place / file.holds}{hint}")


def _user_paths(study: Study) -> list[_UserPath]:
    """The user's files that the study names."""
    files = environments.load(study.env.name).user_files(study.env)
    env = f"env {study.config.env}"
    paths = [_UserPath(file.stage, f"{env}: {file.key}", file.path, file.made) for file in files]
    model, name = study.model, f"model {study.config.model}"
    if model.path is not None:
        hint = "the folder of a Hugging Face model was expected, not a name on the hub"
        # An empty folder would otherwise be noticed only after the old base is deleted.
        paths.append(_UserPath("base", f"{name}: path", model.path, holds="config.json", hint=hint))
    if model.package is not None and model.package.wheel is not None:
        paths.append(_UserPath("base", f"{name}: wheel", model.package.wheel))
    return paths


def check_shareable(study: Study) -> None:
    """Refuse Snakemake's cache for a study that reads the user's own files.

    The key of a cached result is made of commands, params and inputs. It does not see the content
    of a folder outside the results.

    Raises:
        UserError: naming the setting that leads there.
    """
    files = environments.load(study.env.name).user_files(study.env)
    keys = [f"env {study.config.env}: {file.key}" for file in files]
    if study.model.path is not None:
        keys.append(f"model {study.config.model}: path")
    for key in keys:
        raise UserError(f"--cache: a cached result would not tell one folder from another ({key})")


def check_slurm(command: str = "sinfo") -> None:
    """Refuse to submit jobs to a Slurm that does not answer.

    Args:
        command: of Slurm, one that asks the controller.

    Raises:
        UserError: with what it said.
    """
    try:
        done = subprocess.run(
            [command, "--noheader"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"Slurm does not answer: {error}") from None
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"{command} ended with {done.returncode}"]
        raise UserError(f"Slurm does not answer: {said[-1]}")
