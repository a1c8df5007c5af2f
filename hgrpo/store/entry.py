"""A finished job's folder in the store: what it was made from, and the links that lead to it."""

import contextlib
import datetime
import hashlib
import json
import os
import shutil
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from hgrpo.atomic import atomic_file, write_json
from hgrpo.config.canonical import settings_digest
from hgrpo.errors import UserError
from hgrpo.provenance import processor, revision
from hgrpo.stages.order import load
from hgrpo.stages.paths import Job
from hgrpo.store.code import closure, roots
from hgrpo.store.plan import MADE, STORE, Plan, Planned, flat

JOB_FILE, PLAN = "job.json", "plan.json"
# Entries of job.json about the command, not about what makes its result.
_OF_THE_RUN = ("log", "words", "outputs")
# Below the store: a file for each job that has finished, named by the contents of its inputs.
_SAME = STORE / "same"


def write_job(plan: Plan, planned: Planned, words: list[str]) -> Path:
    """Write what the job's command reads: its settings, code, inputs and options.

    The settings lie in a file of their own, because all jobs of an arm share them.
    """
    preimage = plan.preimage(planned.stage, planned.job, planned.inputs)
    settings = plan.settings(planned.stage, planned.job.method or None)
    file = STORE / "settings" / f"{preimage['settings']}.json"
    if not file.is_file():
        _write(file, settings)
    file = STORE / "code" / f"{preimage['code']}.json"
    if not file.is_file():
        _write(file, closure(roots(planned.stage, settings)))
    outputs = [name.removeprefix(f"{planned.entry}/") for name in flat(planned.outputs)]
    job = {"key": planned.key, "study": plan.study.config.name, "log": planned.log}
    job |= {"outputs": outputs, "words": words}
    _write(planned.entry / JOB_FILE, preimage | job)
    return planned.entry / JOB_FILE


def take_equal(job: Mapping, entry: Path) -> bool:
    """Copy the results of a job whose inputs have the same contents, if one has finished.

    Its key is another one because an earlier stage was edited in a way that changed no content.
    """
    twin = _twin(job)
    if twin is None or twin == entry:
        return False
    made = read_made(twin)
    for name, digest in made["files"].items():
        if not (twin / name).is_file():
            return False
        (entry / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(twin / name, entry / name)
        if sha256(entry / name) != digest:
            print(f"not taken from {twin}: {name} is not what the job wrote")
            return False
    spent = {name: made[name] for name in ("seconds", "bytes")}
    _write_made(job, entry, made["files"], {"taken_from": twin.name} | spent)
    print(f"taken from {twin}, where a job with the same inputs has finished")
    return True


def record(job: Mapping, entry: Path, began: float) -> None:
    """Write made.json: what a job was made from, its files, and when and where it ran.

    Args:
        job: the content of its job.json.
        entry: the folder of its key.
        began: a reading of `time.time` at its start.
    """
    files = {name: sha256(entry / name) for name in sorted(job["outputs"])}
    size = sum((entry / name).stat().st_size for name in files)
    _write_made(job, entry, files, {"seconds": round(time.time() - began, 3), "bytes": size})


def _write_made(job: Mapping, entry: Path, files: Mapping[str, str], more: Mapping) -> None:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    where = {"host": socket.gethostname(), "processor": processor(), "revision": revision()}
    made = {name: value for name, value in job.items() if name not in _OF_THE_RUN}
    made |= {"contents": contents(job), "finished": now} | where | dict(more) | {"files": files}
    _write(entry / MADE, made)
    note_contents(made)


def note_contents(made: Mapping) -> None:
    """Let jobs with the same contents of inputs find this result."""
    if made["contents"]:
        with atomic_file(_SAME / made["contents"]) as path:
            path.write_text(f"{made['key']}\n", encoding="utf-8")


def _twin(job: Mapping) -> Path | None:
    same = contents(job)
    if same is None or not (_SAME / same).is_file():
        return None
    twin = STORE / (_SAME / same).read_text(encoding="utf-8").strip()
    return twin if (twin / MADE).is_file() else None


def contents(job: Mapping) -> str | None:
    """Hash (16 hex digits) of all that decides a job's results; None if an input is not there.

    Inputs count with their contents, where the key has the keys of their jobs.
    """
    try:
        inputs = {
            name: [[path.partition("/")[2], _digest_of(path)] for path in paths]
            for name, paths in job["inputs"].items()
        }
    except OSError:
        return None
    parts = {name: job[name] for name in ("stage", "settings", "code", "job", "user_files")}
    return settings_digest(parts | {"inputs": inputs})


def _digest_of(path: str) -> str:
    """SHA-256 of a file of the store, from the record of the job that made it if there is one."""
    key, _, name = path.partition("/")
    made = STORE / key / MADE
    files = read_made(made.parent)["files"] if made.is_file() else {}
    return files.get(name) or sha256(STORE / path)


def read_made(entry: Path) -> dict:
    """The record of a finished job.

    Raises:
        UserError: there is none, or it is damaged.
    """
    try:
        return json.loads((entry / MADE).read_bytes())
    except FileNotFoundError:
        raise UserError(f"{entry}: no finished job") from None
    except ValueError:
        raise UserError(
            f"{entry / MADE}: damaged; delete the folder, and its job runs again"
        ) from None


def made_entries() -> Iterator[Path]:
    """The folders of all finished jobs."""
    return (path.parent for path in sorted(STORE.glob(f"*/{MADE}")))


def key_of(link: Path) -> str | None:
    """The key of the result that a link below results/<study> leads to; None for other paths."""
    parts = link.readlink().parts if link.is_symlink() else ()
    return parts[parts.index(STORE.name) + 1] if STORE.name in parts else None


def linked_jobs(results: Path) -> list[dict]:
    """The record of each job that results/<study> leads to."""
    keys = set(map(key_of, results.rglob("*"))) - {None}
    return [read_made(results.parent / STORE.name / key) for key in sorted(keys)]


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def link(root: Path, entries: Iterable[Path]) -> None:
    """Let results/<study>/ lead to finished jobs.

    Raises:
        UserError: a folder of results that an earlier version of hgrpo wrote is in the way.
    """
    for entry in entries:
        made = read_made(entry)
        for name in linked_names(made["stage"], Job(**made["job"]), made["files"]):
            _link(root / name, entry / name)


def link_planned(job: Mapping) -> None:
    """Link a job that has just finished, if the newest run of its study names its result."""
    results = STORE.parent / job["study"]
    with contextlib.suppress(UserError):  # in a bucket there is no plan
        if job["key"] in {each.key for each in read_plan(results)}:
            link(results, [STORE / job["key"]])


def unlink(root: Path, jobs: Iterable[Planned], older: bool = False) -> None:
    """Remove the links of jobs in results/<study>; with `older`, only those to older results."""
    for planned in jobs:
        for name in names_of(planned):
            link = root / name
            if link.is_symlink() and not (older and planned.key in link.readlink().parts):
                link.unlink()


def names_of(planned: Planned) -> list[str]:
    """Paths below results/<study> that lead to a job."""
    files = [path.removeprefix(f"{planned.entry}/") for path in flat(planned.outputs)]
    return linked_names(planned.stage, planned.job, files)


def linked_names(stage: str, job: Job, files: Iterable[str]) -> list[str]:
    """Paths below results/<study> that lead to a job: its folder, or its files in a shared one."""
    folder = load(stage).FOLDER.format(**vars(job))
    if folder not in ("", "report"):
        return [folder]
    depth = len(Path(folder).parts) + 1
    return list(dict.fromkeys("/".join(Path(name).parts[:depth]) for name in files))


def _link(place: Path, target: Path) -> None:
    leads_to = os.path.relpath(target, place.parent)
    if place.is_symlink() and os.readlink(place) == leads_to:
        return
    if not place.is_symlink():
        # Snakemake makes the folders of a file that is its target.
        for folder, _, _ in os.walk(place, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
    if place.exists() and not place.is_symlink():
        raise UserError(
            f"{place}: written by an earlier version of hgrpo, which had no store; "
            "move results/ away, and the study runs anew"
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(place) as scratch:
        scratch.symlink_to(leads_to)


def write_plan(plan: Plan) -> None:
    """Write results/<study>/plan.json, the key of every job, for the monitor."""
    rows = [{"stage": p.stage, "key": p.key, **vars(p.job)} for p in plan.jobs()]
    _write(Path(plan.root, PLAN), rows)


def _write(path: Path, content: object) -> None:
    with atomic_file(path) as scratch:
        write_json(scratch, content)


def read_plan(results: Path) -> list[Planned]:
    """The jobs of the newest run of results/<study>, without their files.

    Raises:
        UserError: no run has begun.
    """
    try:
        rows = json.loads((results / PLAN).read_bytes())
    except FileNotFoundError:
        raise UserError(f"{results / PLAN}: no such file; run the study first") from None
    jobs = []
    for row in rows:
        job = Job(row["method"], row["seed"], row["round"])
        folder = f"{STORE}/{row['key']}/{load(row['stage']).FOLDER.format(**vars(job))}"
        jobs.append(Planned(row["stage"], job, row["key"], folder.rstrip("/"), {}, {}))
    return jobs
