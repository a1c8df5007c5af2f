"""What an exported archive says of its results: the jobs, what made them, and the files' hashes."""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import Field

from hgrpo.config.canonical import as_json
from hgrpo.config.strict import Strict
from hgrpo.stages.order import STAGES, belongs_to_an_arm, load
from hgrpo.study.study import Name, Study
from hgrpo.workflow.code_version import modules_of
from hgrpo.workflow.reuse import sha256
from hgrpo.workflow.rules import StudyRules
from hgrpo.workflow.watch.jobs import StudyJob, study_jobs

NAME = "export.json"
# The second file of an archive: the SHA-256 of the first one, as `sha256sum -c` reads it.
CHECKSUM = f"{NAME}.sha256"
FORMAT = 3
# Since this format, an archive has the file `CHECKSUM`.
CHECKED_SINCE = 3
START = ("fetch_assets", "assets", "expert", "base", "sft")
# Of these, what says nothing about an SFT policy that was taken from a folder.
OF_FINE_TUNING = ("expert", "sft")
# The folders of stages that belong to an arm: <folder>/<method>/seed_<s>/round_<r>/...
_OF_ARMS = {load(stage).FOLDER.split("/")[0] for stage in STAGES if belongs_to_an_arm(stage)}
# What all arms share: the file that tells one from another, and the entry that names the weights.
SHARED = {
    "panels": ("assets/panels.json", None),
    "base model": ("base/summary.json", "digest"),
    "SFT policy": ("sft/summary.json", "weights"),
}
# What `hgrpo.provenance` adds to a stage's own entries; `Made` compares code and settings.
_WHERE = {"packages", "code", "python", "revision", "hardware"}


class Made(Strict):
    """What the jobs of a stage were made with, for one arm or, with the arm "", for all arms.

    Attributes:
        settings: the stage's settings, as the pipeline passes them.
        code: the hash of its code.
        modules: from `modules_of`; {} in archives of format 1.
    """

    settings: dict[str, object]
    code: str
    modules: dict[str, str] = {}


class Manifest(Strict):
    """The content of `export.json`, the first file of an archive.

    Attributes:
        study: name of the study.
        methods, seeds, rounds: what was exported.
        made: stage -> arm -> what its jobs were made with. Since format 3 also of the start, whose
            files need not be in the archive.
        shared: the names in `SHARED` -> what tells it from another.
        packages: package -> version, on the machine that exported.
        revision: git revision of the code there, from `hgrpo.provenance.revision`.
        files: path below results/<study> -> SHA-256.
        contents: path of each JSON file among the results -> its `content_hash`.
    """

    format: int = Field(ge=1, le=FORMAT)
    study: Name
    methods: list[Name]
    seeds: list[int]
    rounds: int
    made: dict[str, dict[str, Made]]
    shared: dict[str, str]
    packages: dict[str, str]
    revision: str | None = Field(None, pattern=r"^[!-~]{1,100}$")
    files: dict[str, str]
    contents: dict[str, str] = {}


def holds_start(manifest: Manifest) -> bool:
    """Whether an archive has the files of what all arms start from."""
    return SHARED["SFT policy"][0] in manifest.files


def says_start(made: Mapping[str, object]) -> bool:
    """Whether `Manifest.made` says what the start was made with; older archives do not."""
    return "sft" in made


def takes_adapter(made: Mapping[str, Mapping[str, Made]]) -> bool:
    """Whether the SFT policy is taken from a folder that the user names."""
    of_sft = made.get("sft", {}).get("")
    return of_sft is not None and bool(of_sft.settings.get("sft", {}).get("adapter"))


def checksum_text(text: bytes) -> str:
    """The content of the file `CHECKSUM`, for the bytes of the file `NAME`."""
    return f"{hashlib.sha256(text).hexdigest()}  {NAME}\n"


def exchanged_jobs(study: Study, results: Path, start: bool) -> list[StudyJob]:
    """The jobs of the study's arms and, with `start`, those of what all arms start from."""
    return [
        job for job in study_jobs(study, results) if job.method or (start and job.stage in START)
    ]


def job_folder(name: str) -> str:
    """The folder of the job that wrote a result; both paths are below results/<study>."""
    return _first_parts(name, 4)


def run_folder(name: str) -> str:
    """The folder of all rounds of a result's arm and seed; for the start, the stage's folder."""
    return _first_parts(name, 3)


def _first_parts(name: str, of_an_arm: int) -> str:
    parts = name.split("/")
    return "/".join(parts[: of_an_arm if parts[0] in _OF_ARMS else 1])


def is_result(name: str) -> bool:
    """Whether a file is a job's output; logs and benchmarks differ from run to run."""
    return name.split("/")[0] not in ("logs", "benchmarks")


def extras(job: StudyJob, results: Path) -> list[Path]:
    """A job's log and benchmark, which travel with its results if they are there."""
    return [job.log, results / "benchmarks" / job.stage / f"{job.log.stem}.jsonl"]


def made_with(study: Study, jobs: Iterable[StudyJob]) -> dict[str, dict[str, Made]]:
    """What jobs of a study would be made with now: stage -> arm -> settings and code."""
    found: dict[str, dict[str, Made]] = {}
    for stage, arm in dict.fromkeys((job.stage, job.method) for job in jobs):
        found.setdefault(stage, {})[arm] = made_now(study, stage, arm)
    return found


def made_now(study: Study, stage: str, arm: str) -> Made:
    """What a stage's jobs would be made with now, for one arm or, with the arm "", for all."""
    of = StudyRules(study, "")
    settings, code = json.loads(of.cfg(stage, arm or None)), of.code(stage, arm or None)
    return Made(settings=settings, code=code, modules=modules_of(stage, settings))


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
            return str(json.loads(path.read_bytes())[key])
    return sha256(path)


def content_hash(path: Path) -> str:
    """SHA-256 of what a JSON file says, apart from when, where and how fast it was made.

    Two people who train the same arm get the same content on two days and from two revisions.
    """
    try:
        content = json.loads(path.read_bytes())
    except ValueError:
        return sha256(path)
    if isinstance(content, dict):
        content = {key: value for key, value in content.items() if key not in _WHERE}
    return hashlib.sha256(as_json(_timeless(content)).encode()).hexdigest()


def _timeless(value: object) -> object:
    """A JSON value without the time of its making and without seconds, whose names end in `_s`."""
    if isinstance(value, list):
        return [_timeless(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key for key in value if key != "finished" and not key.endswith("_s")}
    return {key: _timeless(item) for key, item in value.items() if key in kept}


def differences(
    theirs: Mapping,
    ours: Mapping,
    before: str = "",
    words: tuple[str, str] = ("there", "here"),
) -> list[str]:
    """One line per key whose value differs: `credit.alpha: 0.3 there, 0.5 here`."""
    found = []
    for key in sorted({*theirs, *ours}):
        there, here = theirs.get(key), ours.get(key)
        if isinstance(there, Mapping) and isinstance(here, Mapping):
            found += differences(there, here, f"{before}{key}.", words)
        elif there != here:
            values = f"{_shown(there)} {words[0]}, {_shown(here)} {words[1]}"
            found.append(f"{before}{key}: {values}")
    return found


def _shown(value: object) -> str:
    return "nothing" if value is None else json.dumps(value)
