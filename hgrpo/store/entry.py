"""Records of finished jobs in the store, and links in results/<study> to their folders."""

import contextlib
import datetime
import functools
import hashlib
import json
import os
import shutil
import socket
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from hgrpo.atomic import atomic_file, write_json
from hgrpo.config.bounds import NAME
from hgrpo.config.canonical import settings_digest
from hgrpo.config.read import validate
from hgrpo.errors import UserError
from hgrpo.provenance import processor, revision
from hgrpo.stages.order import STAGES, load
from hgrpo.stages.paths import Job
from hgrpo.store.code import closure, roots
from hgrpo.store.plan import ASKED_FOR, KEY, MADE, STORE, Plan, Planned, flat

JOB_FILE, PLAN = "job.json", "plan.json"
# The parts of a record that are hashed into the key.
HASHED = ("stage", "settings", "code", "user_files", "job", "inputs")
# Index of finished jobs, with one file per job. The name of the file is the hash that the function
# `contents` returns.
_SAME = STORE / "same"
# Stages whose results all arms share. Files of later stages may contain times.
_BEFORE_ARMS = ("assets", "expert", "base", "sft")
_Hash = Annotated[str, StringConstraints(pattern=f"^{KEY}$")]
_Number = Annotated[int, Field(ge=0, lt=2**63)]


class _Job(BaseModel):
    method: Annotated[str, StringConstraints(pattern=f"{NAME}|^$", max_length=100)]
    seed: _Number
    round: _Number


class Record(BaseModel, extra="allow"):
    """The content of made.json."""

    key: _Hash
    stage: Annotated[str, StringConstraints(pattern=f"^({'|'.join(STAGES)})$")]
    settings: _Hash
    code: _Hash
    user_files: str | None
    job: _Job
    inputs: dict[str, list[Annotated[str, StringConstraints(pattern=f"^{KEY}/")]]]
    contents: _Hash | None
    versions: dict[str, str] = {}
    finished: str
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    bytes: _Number
    host: str
    processor: str
    revision: str | None = None
    files: dict[str, str]


def write_job(plan: Plan, planned: Planned, words: list[str]) -> Path:
    """Write a job's settings, code hashes, inputs and options; return the path of job.json.

    The settings are stored in a separate file, because all jobs of an arm share them.
    """
    preimage = plan.preimage(planned.stage, planned.job, planned.inputs)
    settings = plan.settings(planned.stage, planned.job.method or None)
    _write(STORE / "settings" / f"{preimage['settings']}.json", settings)
    file = STORE / "code" / f"{preimage['code']}.json"
    if not file.is_file():
        _write(file, closure(roots(planned.stage, settings)))
    outputs = [name.removeprefix(f"{planned.entry}/") for name in flat(planned.outputs)]
    job = {"key": planned.key, "study": plan.study.config.name, "log": planned.log}
    job |= {"outputs": outputs, "words": words}
    _write(planned.entry / JOB_FILE, preimage | job)
    return planned.entry / JOB_FILE


def take_equal(job: Mapping, entry: Path) -> bool:
    """Copy the results of a finished job with the same settings and input contents, if one exists.

    The two jobs have different keys if an earlier stage was edited but its outputs did not change.
    """
    same = _SAME / (contents(job) or "")
    twin = STORE / same.read_text(encoding="utf-8").strip() if same.is_file() else entry
    if twin == entry or not (twin / MADE).is_file():
        return False
    made = read_made(twin)
    for name, digest in made["files"].items():
        if not (twin / name).is_file() or sha256(twin / name) != digest:
            print(f"not copied from {twin}: {name} has changed since its job wrote it")
            return False
        (entry / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(twin / name, entry / name)
    spent = {name: made[name] for name in ("seconds", "bytes")}
    _write_made(job, entry, made["files"], {"taken_from": twin.name} | spent)
    print(f"copied from {twin}, a finished job with the same inputs")
    return True


def record(job: Mapping, entry: Path, began: float) -> None:
    """Write made.json: key, inputs, hashes of the output files, and time and machine of the run.

    Args:
        job: the content of job.json.
        entry: the job's folder in the store.
        began: `time.time()` at the job's start.
    """
    files = {name: sha256(entry / name) for name in sorted(job["outputs"])}
    size = sum((entry / name).stat().st_size for name in files)
    _write_made(job, entry, files, {"seconds": round(time.time() - began, 3), "bytes": size})


def _write_made(job: Mapping, entry: Path, files: Mapping[str, str], more: Mapping) -> None:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    where = {"host": socket.gethostname(), "processor": processor(), "revision": revision()}
    made = {name: job[name] for name in (*HASHED, "key", "study")}
    made |= {"contents": contents(job), "versions": versions(job), "finished": now}
    made |= where | dict(more) | {"files": files}
    _write(entry / MADE, made)
    add_to_index(made)


def add_to_index(made: Mapping) -> None:
    """Add a result to the index that `take_equal` searches."""
    if made["contents"]:
        with atomic_file(_SAME / made["contents"]) as path:
            path.write_text(f"{made['key']}\n", encoding="utf-8")


def contents(job: Mapping) -> str | None:
    """Return a hash of a job's settings, code and input contents; None if an input is missing.

    Raises:
        UserError: an input was edited since its job wrote it.
    """
    try:
        inputs = {
            name: [[path.partition("/")[2], _digest_of(path)] for path in paths]
            for name, paths in job["inputs"].items()
        }
    except OSError:
        return None
    return settings_digest({name: job[name] for name in HASHED} | {"inputs": inputs})


def versions(job: Mapping) -> dict[str, str]:
    """Map each file of the games, base and SFT policy behind a job's inputs to its SHA-256.

    Two processors can write different files to the same path, because the key does not depend on
    the processor.

    Raises:
        UserError: two inputs were made from different versions of a file.
    """
    inputs = [(f"{key}/{name}", STORE / key) for name, key in sources(job).items()]
    made = [(path, read_made(entry)) for path, entry in inputs if (entry / MADE).is_file()]
    direct = [(path, each) for path, each in made if each["stage"] in _BEFORE_ARMS]
    pairs = {(path, each["files"][path.partition("/")[2]]) for path, each in direct}
    pairs |= {pair for _, each in made for pair in each["versions"].items()}
    for path, many in Counter(path for path, _ in sorted(pairs)).items():
        if many > 1:
            raise UserError(
                f"{STORE / path}: the job's inputs were made from different versions of this file; "
                f"delete the results of the older one: {', '.join(sorted(stale(read_all())))}"
            )
    return dict(sorted(pairs))


def stale(records: Mapping[str, Mapping]) -> set[str]:
    """Keys of the results whose games, base or SFT policy have another version in `records`."""
    now = {
        f"{key}/{name}": of["files"][name] for key, of in records.items() for name in of["files"]
    }
    differ = {key: of["versions"].items() - now.items() for key, of in records.items()}
    return {key for key, pairs in differ.items() if any(path in now for path, _ in pairs)}


def _digest_of(path: str) -> str:
    key, _, name = path.partition("/")
    entry, digest = STORE / key, sha256(STORE / path)
    # If results are in a bucket, the record of the job that wrote the input may be missing.
    files = read_made(entry)["files"] if (entry / MADE).is_file() else {}
    if files.get(name, digest) != digest:
        raise UserError(
            f"{entry / name}: the file has changed since its job wrote it; delete {entry} to run "
            "the job again"
        )
    return digest


def read_made(entry: Path) -> dict:
    """Read the record of a finished job; raise UserError if it is missing or damaged."""
    try:
        return validate(Record, json.loads((entry / MADE).read_bytes()), MADE).model_dump()
    except FileNotFoundError:
        raise UserError(f"{entry}: the folder contains no finished job") from None
    except (UserError, ValueError) as error:
        mistake = str(error).splitlines()[0]
        remedy = f"delete {entry} to run the job again"
        raise UserError(f"{entry / MADE}: the file is damaged ({mistake}); {remedy}") from None


def read_all() -> dict[str, dict]:
    """Map the key of each finished job to its record."""
    return {path.parent.name: read_made(path.parent) for path in sorted(STORE.glob(f"*/{MADE}"))}


def sources(made: Mapping) -> dict[str, str]:
    """Map the path of each input, relative to results/<study>, to the key of the input's job."""
    paths = [path.partition("/") for paths in made["inputs"].values() for path in paths]
    return {path: key for key, _, path in paths}


def key_of(link: Path) -> str | None:
    """The key of the result to which a link in results/<study> leads; None for other paths."""
    parts = link.readlink().parts if link.is_symlink() else ()
    return parts[parts.index(STORE.name) + 1] if STORE.name in parts else None


def linked_jobs(results: Path) -> list[dict]:
    """The records of all jobs linked from results/<study>."""
    keys = set(map(key_of, results.rglob("*"))) - {None}
    return [read_made(results.parent / STORE.name / key) for key in sorted(keys)]


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hex digits; cached until the file changes."""
    state = path.stat()
    return _sha256(path, state.st_ino, state.st_size, state.st_mtime_ns)


@functools.cache
def _sha256(path: Path, *state: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def link(root: Path, records: Iterable[Mapping]) -> None:
    """Link finished jobs, given by their records, into results/<study>/.

    Raises:
        UserError: the path of a link already contains results from an earlier version of hgrpo.
    """
    for made in records:
        for name in linked_names(made["stage"], Job(**made["job"]), made["files"]):
            place = root / name
            leads_to = os.path.relpath(STORE / made["key"] / name, place.parent)
            if place.is_symlink() and os.readlink(place) == leads_to:
                continue
            _check_free(place)
            with atomic_file(place) as scratch:
                scratch.symlink_to(leads_to)


def link_planned(job: Mapping) -> None:
    """Link a finished job if the newest plan of its study includes it, or if it ran on request."""
    results = STORE.parent / job["study"]
    with contextlib.suppress(UserError):  # there is no plan.json if results are in a bucket
        if job["key"] in {each.key for each in read_plan(results)} or job["stage"] in ASKED_FOR:
            link(results, [read_made(STORE / job["key"])])


def unlink(root: Path, jobs: Iterable[Planned], older: bool = False) -> None:
    """Remove the links of jobs; with `older`, only to older results. UserError as in `link`."""
    for planned in jobs:
        for name in names_of(planned):
            place = root / name
            _check_free(place)
            if place.is_symlink() and not (older and planned.key in place.readlink().parts):
                place.unlink()


def names_of(planned: Planned) -> list[str]:
    """Paths of a job's links, relative to results/<study>."""
    files = [path.removeprefix(f"{planned.entry}/") for path in flat(planned.outputs)]
    return linked_names(planned.stage, planned.job, files)


def linked_names(stage: str, job: Job, files: Iterable[str]) -> list[str]:
    """Paths of a job's links: its folder, or each of its files if stages share the folder."""
    folder = load(stage).FOLDER.format(**vars(job))
    if folder not in ("", "report"):
        return [folder]
    depth = len(Path(folder).parts) + 1
    return list(dict.fromkeys("/".join(Path(name).parts[:depth]) for name in files))


def _check_free(place: Path) -> None:
    if place.is_symlink():
        return
    # Remove the empty folders that Snakemake creates for a target file.
    for folder, _, _ in os.walk(place, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    if place.exists():
        study = Path(*place.parts[:2])
        raise UserError(
            f"{place}: written by an earlier version of hgrpo without a store; move it or {study} "
            "elsewhere, and run the study again"
        )


def write_plan(plan: Plan) -> None:
    """Write the key of every job to results/<study>/plan.json, for the monitor."""
    rows = [{"stage": p.stage, "key": p.key, **vars(p.job)} for p in plan.jobs()]
    _write(Path(plan.root, PLAN), rows)


def _write(path: Path, content: object) -> None:
    with atomic_file(path) as scratch:
        write_json(scratch, content)


def read_plan(results: Path) -> list[Planned]:
    """The jobs of the newest run of results/<study>; their inputs and outputs are left empty.

    Raises:
        UserError: there is no plan.json, or it is damaged.
    """
    file, jobs = results / PLAN, []
    try:
        for row in json.loads(file.read_bytes()):
            stage, key = row["stage"], str(row["key"])
            job = Job(str(row["method"]), int(row["seed"]), int(row["round"]))
            folder = f"{STORE}/{key}/{load(stage).FOLDER.format(**vars(job))}"
            jobs.append(Planned(stage, job, key, folder.rstrip("/"), {}, {}))
    except FileNotFoundError:
        raise UserError(f"{file}: no such file; run the study first") from None
    except (ValueError, LookupError, TypeError):
        raise UserError(f"{file}: the file is damaged; delete it and run the study again") from None
    return jobs
