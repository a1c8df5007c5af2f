"""Checks before the first job that jobs will find variables, packages, whole files and Slurm.

Also that the bucket with the results can be asked: without credentials, Snakemake would plan all
the same, with an error for every file.
"""

import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from hgrpo.config.user_path import missing, user_path
from hgrpo.envs import kinds as environments
from hgrpo.envs.environment import UserFile
from hgrpo.errors import UserError
from hgrpo.learning.method import MethodConfig
from hgrpo.stages.order import load
from hgrpo.study.study import Study

if TYPE_CHECKING:
    from snakemake.workflow import Workflow

# The S3 plugin's documented variables begin so, and its settings hold their values.
_PREFIX = "SNAKEMAKE_STORAGE_S3"


def check_jobs(
    study: Study,
    jobs: Collection[tuple[str, str | None]],
    environment: Mapping[str, str],
    elsewhere: bool,
    executor: str,
) -> None:
    """Refuse to start if a job would fail because something is missing.

    Args:
        study: the study to run.
        jobs: (stage, method or None) of each job to run.
        environment: environment variables.
        elsewhere: whether jobs run on other machines; if so, files and packages are not checked.
        executor: name of Snakemake's executor.

    Raises:
        UserError: something is missing. The message has a line for each thing.
    """
    stages = {stage for stage, _ in jobs}
    if "credit_agreement" in stages:
        credited = study.methods
    else:
        credited = dict.fromkeys(method for stage, method in jobs if stage == "rl_round" and method)
    lacks = [
        f"{method}: {line}"
        for method in credited
        for line in missing_variables(study.methods[method], environment).values()
    ]
    if not elsewhere:
        lacks += lacking_user_files(study, stages)
        if any("engine" in load(stage).USES for stage in stages - {"base"}):
            try:
                study.config.engine.engine.check_installed()
            except UserError as error:
                lacks.append(str(error))
    answers, text = ask_slurm() if executor == "slurm" else (True, "")
    lacks += [] if answers else [text]
    if lacks:
        raise UserError("\n".join(lacks))


def missing_variables(method: MethodConfig, environment: Mapping[str, str]) -> dict[str, str]:
    """Map each unset environment variable that a method's credit needs to the message about it."""
    needed = method.credit.declared.environment_variables if method.train else {}
    return {name: said for name, said in needed.items() if not environment.get(name, "").strip()}


def set_variables(study: Study, environment: Mapping[str, str]) -> list[str]:
    """Names of the variables that credit needs, such as a judge's API key, as far as they are set.

    Pods get these from a secret. Other jobs have the environment of the run anyway.
    """
    needed = {name for each in study.methods.values() for name in missing_variables(each, {})}
    return sorted(name for name in needed if environment.get(name, "").strip())


@dataclass(frozen=True, slots=True)
class UserPath(UserFile):
    """A user's path that a stage reads: of the environment, a model or an SFT policy.

    Attributes:
        hint: what the message adds if the path does not exist.
    """

    hint: str = ""


def lacking_user_files(study: Study, stages: Collection[str]) -> Iterator[str]:
    """A line, with config, key and path, for each of the user's paths that stages lack.

    Either the path does not exist, or an environment variable in it is not set.
    """
    for file in user_paths(study):
        if file.stage in stages or (file.made and "fetch_assets" in stages):
            try:
                gone = missing(file.path, file.key, file.holds)
            except UserError as error:
                yield str(error)
                continue
            if gone is not None and not file.made:
                whole = gone == user_path(file.path, file.key)
                hint = f"; {file.hint}" if file.hint and whole else ""
                yield f"{file.key}: {file.path}: there is no {gone}{hint}"


def user_paths(study: Study) -> list[UserPath]:
    """The paths in the study that lead to the user's own files."""
    files = environments.load(study.env.name).user_files(study.env)
    env = f"env {study.config.env}"
    paths = [UserPath(**asdict(file) | {"key": f"{env}: {file.key}"}) for file in files]
    model, name = study.model, f"model {study.config.model}"
    if model.path is not None:
        hint = "the folder of a Hugging Face model was expected, not a name on the hub"
        # Without this check, the base stage would fail only after Snakemake deleted the old base.
        holds = ("config.json", "*.safetensors")
        paths.append(UserPath("base", f"{name}: path", model.path, holds=holds, hint=hint))
    if study.config.sft.adapter is not None:
        given = study.config.sft.adapter
        hint = "a folder that the stage sft wrote was expected"
        holds = ("summary.json", "adapter/*.safetensors")
        paths.append(UserPath("sft", "sft.adapter", given, holds=holds, hint=hint))
    if model.package is not None and model.package.wheel is not None:
        paths.append(UserPath("base", f"{name}: wheel", model.package.wheel))
    return paths


def ask_slurm(command: str = "sinfo") -> tuple[bool, str]:
    """Whether Slurm answers; its partitions with their GPUs, such as `gpu gpu:8`, or why not."""
    try:
        done = subprocess.run(
            [command, "--noheader", "-o%P %G"],
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, f"Slurm does not answer: {error}"
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"{command} ended with {done.returncode}"]
        return False, f"Slurm does not answer: {lines[-1]}"
    return True, "; ".join(done.stdout.splitlines())


def check_bucket(workflow: "Workflow") -> None:
    """Refuse to plan a study whose results are in an S3 bucket if there are no credentials.

    Raises:
        UserError: they are missing. The message names the variables.
    """
    if workflow.storage_settings.default_storage_provider == "s3":
        tagged = (workflow.storage_provider_settings or {}).get("s3")
        check_keys(tagged.get_settings() if tagged else None, has_own_credentials)


def check_keys(settings: object, found_elsewhere: Callable[[], bool]) -> None:
    """Refuse a bucket without credentials.

    Args:
        settings: those of the S3 plugin, with `access_key` and `secret_key`; None without any.
        found_elsewhere: says whether AWS's own places hold credentials.

    Raises:
        UserError: they are missing. The message names the variables.
    """
    keys = ("access_key", "secret_key")
    missing = [key for key in keys if not getattr(settings, key, None)]
    if not missing or (len(missing) == len(keys) and found_elsewhere()):
        return
    names = " and ".join(f"{_PREFIX}_{key.upper()}" for key in missing)
    raise UserError(f"{names}: not set; the bucket with the results needs them")


def has_own_credentials() -> bool:
    """Whether AWS's library finds credentials: in variables, in ~/.aws, or of the machine."""
    import boto3
    from botocore.exceptions import BotoCoreError

    try:
        return boto3.Session().get_credentials() is not None
    except BotoCoreError:
        return False
