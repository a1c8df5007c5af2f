"""Checks before the first job that jobs will find variables, packages, whole files and Slurm.

Also that there are credentials for a bucket with the results: without them, Snakemake would plan
all the same, with an error for every file.
"""

import subprocess
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from hgrpo.errors import UserError
from hgrpo.games import kinds as environments
from hgrpo.games.environment import UserFile
from hgrpo.games.user_path import missing
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
    trained = dict.fromkeys(method for stage, method in jobs if stage == "rl_round" and method)
    credited = study.methods if "credit_agreement" in stages else trained
    lacks = [
        f"{method}: {line}"
        for method in credited
        for line in missing_variables(study.methods[method], environment).values()
    ]
    if not elsewhere:
        # `fetch_assets` downloads the others, or fails first.
        files = [each for each in user_paths(study) if each.stage in stages and not each.made]
        lacks += filter(None, map(problem, files))
        if any("engine" in load(stage).USES for stage in stages - {"base"}):
            try:
                study.config.engine.engine.check_installed()
            except UserError as error:
                lacks.append(str(error))
    if executor == "slurm" and not (slurm := ask_slurm())[0]:
        lacks.append(slurm[1])
    if lacks:
        raise UserError("\n".join(lacks))


def missing_variables(method: MethodConfig, environment: Mapping[str, str]) -> dict[str, str]:
    """Map each unset environment variable that a method's credit needs to the message about it."""
    needed = method.credit.declared.environment_variables if method.train else {}
    return {name: text for name, text in needed.items() if not environment.get(name, "").strip()}


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
        hint: the remedy if the path or one of its files does not exist.
    """

    hint: str = ""


def problem(file: UserPath) -> str:
    """What is wrong with a user's path, with the remedy; "" if all that it must hold is there."""
    try:
        gone = missing(file.path, file.key, file.holds)
        if gone is None:
            return ""
        text = f"{file.key}: {file.path}: there is no {gone}"
    except UserError as error:  # an environment variable in the path is not set
        text = str(error)
    return f"{text}; {file.hint}" if file.hint else text


def user_paths(study: Study) -> list[UserPath]:
    """The paths in the study that lead to the user's own files."""
    env, fetch = f"env {study.config.env}", f"`make fetch-assets STUDY={study.config.name}`"
    paths = []
    for file in environments.load(study.env.name).user_files(study.env):
        hint = f"{fetch} downloads it" if file.made else ""
        paths.append(UserPath(**asdict(file) | {"key": f"{env}: {file.key}"}, hint=hint))
    model, name = study.model, f"model {study.config.model}"
    if model.path is not None:
        hint = "the folder of a Hugging Face model was expected, not a name on the hub"
        # Without this check, the base stage would fail only after Snakemake deleted the old base.
        holds = ("config.json", "*.safetensors")
        paths.append(UserPath("base", f"{name}: path", model.path, holds=holds, hint=hint))
    if study.config.sft.adapter is not None:
        hint = "a folder that the stage sft wrote was expected"
        holds = ("summary.json", "adapter/*.safetensors")
        paths.append(
            UserPath("sft", "sft.adapter", study.config.sft.adapter, holds=holds, hint=hint)
        )
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
    if workflow.storage_settings.default_storage_provider != "s3":
        return
    tagged = (workflow.storage_provider_settings or {}).get("s3")
    settings = tagged.get_settings() if tagged else None
    keys = [getattr(settings, key, None) for key in ("access_key", "secret_key")]
    import boto3

    # Without keys of the plugin's, AWS's library looks in its own variables, in ~/.aws, and asks
    # the machine.
    if not all(keys) and (any(keys) or boto3.Session().get_credentials() is None):
        names = f"{_PREFIX}_ACCESS_KEY and {_PREFIX}_SECRET_KEY"
        raise UserError(f"{names}: not set; the bucket with the results needs them")
