"""What an exported archive says of its results: the jobs, what made them, and the files' hashes."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from pydantic import Field, field_validator

from hgrpo.config.strict import Strict
from hgrpo.study.study import Study
from hgrpo.workflow.rules import StudyRules

NAME = "export.json"
FORMAT = 1
# What all arms share, and the file that tells one from another.
SHARED = {
    "panels": "assets/panels.json",
    "base model": "base/summary.json",
    "SFT policy": "sft/summary.json",
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
        shared: the names in `SHARED` -> hash of the file there.
        packages: package -> version, on the machine that exported.
        files: path below results/<study> -> SHA-256.
    """

    format: int = Field(ge=FORMAT, le=FORMAT)
    study: str
    methods: list[str]
    seeds: list[int]
    rounds: int
    made: dict[str, dict[str, Made]]
    shared: dict[str, str]
    packages: dict[str, str]
    files: dict[str, str]

    @field_validator("files")
    @classmethod
    def _stay_inside(cls, files: dict[str, str]) -> dict[str, str]:
        for name in files:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or path.as_posix() != name:
                raise ValueError(f"{name}: outside of the study's results")
        return files


def made_with(study: Study, jobs: Iterable[tuple[str, str]]) -> dict[str, dict[str, Made]]:
    """What jobs of a study would be made with now.

    Args:
        jobs: (stage, arm) of each job; the arm is "" for stages that serve all arms.
    """
    of = StudyRules(study, "")
    found: dict[str, dict[str, Made]] = {}
    for stage, arm in dict.fromkeys(jobs):
        settings = json.loads(of.cfg(stage, arm or None))
        found.setdefault(stage, {})[arm] = Made(settings=settings, code=of.code(stage, arm or None))
    return found


def shared_hashes(results: Path) -> dict[str, str]:
    """Hashes of what all arms of a study share; without the files that are not there."""
    return {
        name: sha256(results / path) for name, path in SHARED.items() if (results / path).is_file()
    }


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
