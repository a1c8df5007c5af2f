"""What an exported archive says of its results: the jobs, what made them, and the files' hashes."""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import Field

from hgrpo.config.strict import Strict
from hgrpo.study.study import Name, Study
from hgrpo.workflow.rules import StudyRules
from hgrpo.workflow.watch.jobs import StudyJob, study_jobs

NAME = "export.json"
FORMAT = 1
START = ("fetch_assets", "assets", "expert", "base", "sft")
# What all arms share: the file that tells one from another, and the entry that names the weights.
SHARED = {
    "panels": ("assets/panels.json", None),
    "base model": ("base/summary.json", "digest"),
    "SFT policy": ("sft/summary.json", "weights"),
}


class Made(Strict):
    """What the jobs of a stage were made with, for one arm or, with the arm "", for all arms.

    Attributes:
        settings: the stage's settings, as the pipeline passes them.
        code: the hash of its code.
    """

    settings: dict[str, object]
    code: str


class Manifest(Strict):
    """The content of `export.json`, the first file of an archive.

    Attributes:
        study: name of the study.
        methods, seeds, rounds: what was exported.
        made: stage -> arm -> what its jobs were made with.
        shared: the names in `SHARED` -> what tells it from another.
        packages: package -> version, on the machine that exported.
        files: path below results/<study> -> SHA-256.
    """

    format: int = Field(ge=FORMAT, le=FORMAT)
    study: Name
    methods: list[Name]
    seeds: list[int]
    rounds: int
    made: dict[str, dict[str, Made]]
    shared: dict[str, str]
    packages: dict[str, str]
    files: dict[str, str]


def exchanged_jobs(study: Study, results: Path, start: bool) -> list[StudyJob]:
    """The jobs of the study's arms and, with `start`, those of what all arms start from."""
    return [
        job for job in study_jobs(study, results) if job.method or (start and job.stage in START)
    ]


def extras(job: StudyJob, results: Path) -> list[Path]:
    """A job's log and benchmark, which travel with its results if they are there."""
    return [job.log, results / "benchmarks" / job.stage / f"{job.log.stem}.jsonl"]


def made_with(study: Study, jobs: Iterable[StudyJob]) -> dict[str, dict[str, Made]]:
    """What jobs of a study would be made with now."""
    of = StudyRules(study, "")
    found: dict[str, dict[str, Made]] = {}
    for stage, arm in dict.fromkeys((job.stage, job.method) for job in jobs):
        settings = json.loads(of.cfg(stage, arm or None))
        found.setdefault(stage, {})[arm] = Made(settings=settings, code=of.code(stage, arm or None))
    return found


def shared_hashes(results: Path) -> dict[str, str]:
    """What tells the parts that all arms share from others; without the parts that are missing."""
    return {
        name: _identity(results / path, key)
        for name, (path, key) in SHARED.items()
        if (results / path).is_file()
    }


def _identity(path: Path, key: str | None) -> str:
    """The hash of the weights that a summary records, or else of the file."""
    if key:
        with contextlib.suppress(ValueError, LookupError, TypeError):
            return str(json.loads(path.read_text())[key])
    return sha256(path)


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def differences(theirs: Mapping, ours: Mapping, before: str = "") -> list[str]:
    """One line per key whose value differs: `credit.alpha: 0.3 there, 0.5 here`."""
    found = []
    for key in sorted({*theirs, *ours}):
        there, here = theirs.get(key), ours.get(key)
        if isinstance(there, Mapping) and isinstance(here, Mapping):
            found += differences(there, here, f"{before}{key}.")
        elif there != here:
            found.append(f"{before}{key}: {_shown(there)} there, {_shown(here)} here")
    return found


def _shown(value: object) -> str:
    return "nothing" if value is None else json.dumps(value)
