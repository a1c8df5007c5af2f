"""Plan all jobs of a study, with their keys and their files in the store."""

import contextlib
import functools
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hgrpo.config.canonical import as_json, settings_digest
from hgrpo.errors import UserError
from hgrpo.games.kinds import load as load_game
from hgrpo.games.user_path import user_path
from hgrpo.stages.files import fits, gradient_rounds, runs, trained_rounds
from hgrpo.stages.order import STAGES, load
from hgrpo.stages.paths import Job
from hgrpo.store.code import code_hash, roots
from hgrpo.study.study import Study

STORE = Path("results/store")
_HEAD = f"{STORE}/"
KEY = r"[0-9a-f]{16}"
# File with the record of a finished job; the job writes it last.
MADE = "made.json"
# Stages that run only on request, as named targets.
ASKED_FOR = {
    "truth_round",
    "gradients_round",
    "gradients_page",
    "credit_agreement",
    "viewer",
    "paper",
}
# Stages that use the study's first seed.
_FIRST_SEED = {"truth_round", "credit_agreement"}
OF_ARMS = {
    "rl_round": trained_rounds,
    "credit_fit": fits,
    "evaluate": runs,
    "gradients_round": gradient_rounds,
}
_WORDS = {"rl_round": "round", "credit_fit": "fit after round", "evaluate": "evaluation of round"}
# Name in the column `arm` for jobs that all arms share.
SHARED = "shared"
Files = Mapping[str, str | list[str]]


@dataclass(frozen=True, eq=False)
class Planned:
    """A job of a study.

    Attributes:
        stage: name of the stage.
        job: method, seed and round. A value that the stage does not use has its default.
        key: hash of `Plan.preimage`.
        folder: results/store/<key>/<folder below results/<study>>.
        inputs: maps the name of each input to a file or a list of files in the store.
        outputs: maps the name of each output to a file or a list of files in the store.
    """

    stage: str
    job: Job
    key: str
    folder: str
    inputs: Files
    outputs: Files

    @property
    def entry(self) -> Path:
        """The job's folder in the store."""
        return STORE / self.key

    @property
    def arm(self) -> str:
        """The job's method, or `SHARED`."""
        return self.job.method or SHARED

    @property
    def name(self) -> str:
        """The job's display name, such as `flatGRPO seed 11 round 2`."""
        job, word = self.job, _WORDS.get(self.stage, self.stage)
        if job.method:
            return f"{job.method} seed {job.seed} {word} {job.round}"
        return f"{self.stage} {job.round}" if job.round else self.stage

    @property
    def made(self) -> bool:
        """Whether the job has finished. Imported results also count as finished."""
        return (self.entry / MADE).is_file()

    @property
    def whole(self) -> bool:
        """Whether the job has finished and all its files still exist."""
        return not self.lacks(flat(self.outputs))

    def lacks(self, files: Iterable[str]) -> bool:
        """Whether the job has not finished, or one of these output files is missing."""
        return not (self.made and all(map(os.path.exists, files)))

    @property
    def log(self) -> str:
        """The job's log file."""
        return f"{beside(self.stage, self.folder)}.log"


class Plan:
    """The jobs of a study."""

    def __init__(self, study: Study):
        self.study = study
        self.root = f"results/{study.config.name}"
        self.settings = functools.cache(self._settings)
        self._planned = functools.cache(self._make)
        self.parts = functools.cache(self._parts)

    def jobs(self, asked_for: bool = False) -> Iterator[Planned]:
        """All jobs in stage order; with `asked_for`, also the jobs that run only on request."""
        for stage in stages_of(self.study):
            yield from (self.find(stage, *each) for each in jobs_of(self.study, stage))
        for stage in sorted(ASKED_FOR, key=STAGES.index) if asked_for else ():
            # Skip a stage if no job makes its inputs, e.g. because the run excludes the reference.
            with contextlib.suppress(UserError):
                yield from [self.find(stage, *each) for each in jobs_of(self.study, stage)]

    def to_run(self, goals: Iterable[Planned] = (), again: bool = False) -> list[Planned]:
        """The jobs that a run would start, in the order of the stages.

        Args:
            goals: jobs to finish. The default is the report.
            again: whether to run finished jobs again.
        """
        reached: dict[Planned, None] = {}
        waiting = [(goal, flat(goal.outputs)) for goal in [*goals] or [self.find("report")]]
        while waiting:
            planned, files = waiting.pop()
            if planned in reached or not (again or planned.lacks(files)):
                continue
            reached[planned] = None
            for path in flat(planned.inputs):
                waiting.append((self.maker(path.removeprefix(_HEAD).partition("/")[2]), [path]))
        return [each for each in self.jobs() if each in reached]

    def stored(self, path: str) -> str:
        """Convert a path relative to results/<study> to the path of the same file in the store.

        Raises:
            UserError: no job of the study makes the file.
        """
        return f"{_HEAD}{self.maker(path).key}/{path}"

    def preimage(self, stage: str, job: Job, inputs: Files) -> dict:
        """The mapping whose hash is the job's key."""
        return {
            "stage": stage,
            **self.parts(stage, job.method or None),
            "job": {"method": job.method, "seed": job.seed, "round": job.round},
            "inputs": {
                name: [path.removeprefix(_HEAD) for path in flat({name: files})]
                for name, files in inputs.items()
            },
        }

    def find(self, stage: str, method: str = "", seed: int = 0, round: int = 0) -> Planned:
        """Return a job of the study. Pass 0 for a seed or round that the stage does not use."""
        return self._planned(stage, method, seed, round)

    def _make(self, stage: str, method: str, seed: int, round: int) -> Planned:
        module = load(stage)
        job = Job(method, self.study.config.seeds[0] if stage in _FIRST_SEED else seed, round)
        inputs = self._all_stored(module.inputs(self.study, job))
        if "extras" in vars(module):
            inputs |= self._extras(module.extras(self.study))
        key = settings_digest(self.preimage(stage, job, inputs))
        folder = f"{_HEAD}{key}/{module.FOLDER.format(**vars(job))}".rstrip("/")
        outputs = below(folder, outputs_of(stage, self.study))
        return Planned(stage, job, key, folder, inputs, outputs)

    def _extras(self, files: Files) -> dict[str, str | list[str]]:
        """Optional inputs of a job, or {} unless all of them already exist."""
        try:
            stored = self._all_stored(files)
        except UserError:  # the study has no job that makes them
            return {}
        return stored if all(map(os.path.exists, flat(stored))) else {}

    def _all_stored(self, files: Files) -> dict[str, str | list[str]]:
        return {
            name: [*map(self.stored, each)] if isinstance(each, list) else self.stored(each)
            for name, each in files.items()
        }

    def maker(self, path: str) -> Planned:
        """Return the job that makes a file; argument and errors are the same as in `stored`."""
        parts = path.split("/")
        for place in (path, "/".join(parts[:2]) + "/", "/".join(parts[:4]) + "/"):
            if place in self._makers and path.startswith(place):
                return self.find(*self._makers[place])
        raise UserError(f"{self.root}/{path}: no job of this study makes this file")

    @functools.cached_property
    def _makers(self) -> dict[str, tuple[str, *tuple[str | int, ...]]]:
        """Map a job's folder, or each file of a stage with a single job, to arguments of `find`."""
        makers = {}
        for stage in STAGES:
            folder = load(stage).FOLDER
            if "{" in folder:
                jobs = jobs_of(self.study, stage)
                makers |= {f"{folder.format(**vars(Job(*job)))}/": (stage, *job) for job in jobs}
            else:
                files = flat(below(folder, outputs_of(stage, self.study)))
                makers |= dict.fromkeys(files, (stage,))
        return makers

    def _settings(self, stage: str, method: str | None = None) -> dict:
        return json.loads(as_json(load(stage).from_study(self.study, method)))

    def _parts(self, stage: str, method: str | None) -> dict:
        """The entries of `preimage` that are the same for all jobs of a stage and arm."""
        settings = self.settings(stage, method)
        return {
            "settings": settings_digest(settings),
            "code": code_hash(roots(stage, settings)),
            "user_files": user_digest(self.study, stage, Path(self.root)),
        }


def beside(stage: str, folder: str) -> str:
    """The path of a job's log and of its progress file, without the suffix."""
    return folder if load(stage).FOLDER else f"{folder}/{stage}"


def stages_of(study: Study) -> list[str]:
    """The stages in a run of the whole study, in order."""
    planned = [stage for stage in STAGES if stage not in ASKED_FOR]
    return [
        stage for stage in planned if "needed" not in vars(load(stage)) or load(stage).needed(study)
    ]


def jobs_of(study: Study, stage: str) -> list[tuple[str, int, int]]:
    """List the jobs of a stage as (method, seed, round); unused values are "" or 0."""
    if stage in OF_ARMS:
        return OF_ARMS[stage](study)
    if stage != "truth_round":
        return [("", 0, 0)]
    truth = study.config.truth
    return [("", 0, round) for round in (truth.after_rounds if truth else ())]


def outputs_of(stage: str, study: Study) -> Files:
    """Map the name of each output to its file or files, relative to the stage's folder."""
    module = load(stage)
    return module.outputs(study) if "outputs" in vars(module) else module.OUTPUTS


def below(folder: str, files: Files) -> dict[str, str | list[str]]:
    """The files with `folder` prepended."""
    head = f"{folder}/" if folder else ""
    return {
        name: [head + path for path in each] if isinstance(each, list) else head + each
        for name, each in files.items()
    }


def flat(files: Files) -> list[str]:
    """List all files in a mapping from names to a file or a list of files."""
    return [path for each in files.values() for path in ([each] if isinstance(each, str) else each)]


def user_digest(study: Study, stage: str, results: Path) -> str | None:
    """Digest of the user's files that a stage reads; None if the stage reads none.

    If the files are missing, return the digest that the stage recorded in `results`. Results can
    therefore be copied to a machine without the user's files, and no finished job runs again there.
    """
    if stage in ("assets", "expert"):
        name = {"assets": "assets/manifest.json", "expert": "expert/summary.json"}[stage]
        try:
            return load_game(study.env.name).user_files_digest(study.env, stage)
        except (UserError, OSError):
            return _recorded(results / name, "user_files")
    if stage == "base" and study.model.path is not None:
        # This import requires packages that read weights. Most studies do not need them.
        from hgrpo.base_model.digest import source_digest

        return source_digest(study.model.path, results / "base")
    if stage == "sft" and study.config.sft.adapter is not None:
        from hgrpo.policy.outside_adapter import adapter_digest

        try:
            return adapter_digest(user_path(study.config.sft.adapter, "sft.adapter"))
        except (UserError, OSError):
            return _recorded(results / "sft/summary.json", "given")
    return None


def _recorded(path: Path, key: str) -> str | None:
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        return json.loads(path.read_bytes())[key]
    return None
