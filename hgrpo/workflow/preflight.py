"""Checks before the first job: variables, packages, data files and Slurm."""

import subprocess
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass

from hgrpo.errors import UserError
from hgrpo.games import kinds as environments
from hgrpo.games.environment import UserFile
from hgrpo.games.user_path import missing
from hgrpo.learning.method import MethodConfig
from hgrpo.stages.order import load
from hgrpo.study.study import Study


def check_jobs(
    study: Study,
    jobs: Collection[tuple[str, str | None]],
    environment: Mapping[str, str],
    elsewhere: bool,
    executor: str,
) -> None:
    """Check that no job would fail because of a missing requirement.

    Args:
        study: the study to run.
        jobs: (stage, method or None) of each job to run.
        environment: environment variables.
        elsewhere: whether jobs run on machines whose files and packages cannot be checked here.
        executor: name of Snakemake's executor.

    Raises:
        UserError: requirements are missing; the message has one line per missing requirement.
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
        # Skip missing files that the stage `fetch_assets` will download.
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
    """Map each unset environment variable that a method's credit requires to an error message."""
    needed = method.credit.declared.environment_variables if method.train else {}
    return {name: text for name, text in needed.items() if not environment.get(name, "").strip()}


def set_variables(study: Study, environment: Mapping[str, str]) -> list[str]:
    """Names of the required environment variables that are set, such as a judge's API key.

    Kubernetes pods receive them as a secret. All other jobs inherit the run's environment.
    """
    needed = {name for each in study.methods.values() for name in missing_variables(each, {})}
    return sorted(name for name in needed if environment.get(name, "").strip())


@dataclass(frozen=True, slots=True)
class UserPath(UserFile):
    """A user's file or folder that a stage reads: a data file, a model or an SFT policy.

    Attributes:
        hint: advice for the error message if the path or one of its files does not exist.
    """

    hint: str = ""


def problem(file: UserPath) -> str:
    """Error message for a user's path, with advice; "" if the path and its files exist."""
    try:
        gone = missing(file.path, file.key, file.holds)
        if gone is None:
            return ""
        text = f"{file.key}: {file.path}: no such file or folder: {gone}"
    except UserError as error:  # an environment variable in the path is not set
        text = str(error)
    return f"{text}; {file.hint}" if file.hint else text


def user_paths(study: Study) -> list[UserPath]:
    """The user's own files that are configured in the study."""
    env, fetch = f"env {study.config.env}", f"`make fetch-assets STUDY={study.config.name}`"
    paths = []
    for file in environments.load(study.env.name).user_files(study.env):
        hint = f"{fetch} downloads it" if file.made else ""
        paths.append(UserPath(**asdict(file) | {"key": f"{env}: {file.key}"}, hint=hint))
    model, name = study.model, f"model {study.config.model}"
    if model.path is not None:
        hint = "expected a local folder with a Hugging Face model, not a model name on the Hub"
        # Check the path now. Before a stage starts, Snakemake deletes the stage's old output.
        holds = ("config.json", "*.safetensors")
        paths.append(UserPath("base", f"{name}: path", model.path, holds=holds, hint=hint))
    if study.config.sft.adapter is not None:
        hint = "expected an output folder of the stage sft"
        holds = ("summary.json", "adapter/*.safetensors")
        paths.append(
            UserPath("sft", "sft.adapter", study.config.sft.adapter, holds=holds, hint=hint)
        )
    if model.package is not None and model.package.wheel is not None:
        paths.append(UserPath("base", f"{name}: wheel", model.package.wheel))
    return paths


def ask_slurm(command: str = "sinfo") -> tuple[bool, str]:
    """Return (True, partitions with their GPUs, such as `gpu gpu:8`), or (False, error)."""
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
        lines = done.stderr.strip().splitlines() or [f"{command}: exit status {done.returncode}"]
        return False, f"Slurm does not answer: {lines[-1]}"
    return True, "; ".join(done.stdout.splitlines())
