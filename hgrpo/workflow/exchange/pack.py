"""Pack finished jobs of a study into one archive, and unpack it into a study's results."""

import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import ValidationError
from tqdm import tqdm

from hgrpo.atomic import atomic_file
from hgrpo.errors import UserError
from hgrpo.provenance import provenance, revision
from hgrpo.study.study import Study
from hgrpo.workflow.exchange.imports import record_import
from hgrpo.workflow.exchange.manifest import (
    CHECKED_SINCE,
    CHECKSUM,
    FORMAT,
    NAME,
    Manifest,
    checksum_text,
    content_hash,
    exchanged_jobs,
    extras,
    job_folder,
    made_with,
    shared_hashes,
)
from hgrpo.workflow.planning.jobs import Job
from hgrpo.workflow.reuse import sha256, was_taken
from hgrpo.workflow.watch.jobs import StudyJob

_LARGEST_MANIFEST = 1 << 28
_DAMAGED = (
    f"{NAME}: damaged, or edited after the export: it does not match {CHECKSUM}; ask for the "
    "archive again"
)
_SCRATCH = ".import-"


def check_finished(jobs: Iterable[StudyJob], planned: Iterable[Job]) -> None:
    """Refuse to export a job that is unfinished or out of date, or has lost a file.

    Args:
        jobs: the jobs to export.
        planned: what a run would do now.

    Raises:
        UserError: the message names the first such job.
    """
    states = {(job.stage, job.name): job for job in planned}
    for job in jobs:
        state = states.get((job.stage, job.log.stem))
        if state is None or state.to_run or state.lost:
            raise UserError(
                f"{job.name}: not finished, or out of date; run the study first, or export other "
                "methods, seeds or rounds"
            )


def pack(study: Study, jobs: Sequence[StudyJob], results: Path, target: Path) -> Manifest:
    """Write the archive, and return what it says of itself.

    Args:
        study: the study with the exported methods, seeds and rounds.
        jobs: the jobs to export, all of them finished.
        results: results/<study>.
        target: the archive to write.
    """
    files = [path for job in jobs for path in (*map(Path, job.outputs), *_extras(job, results))]
    outputs = [Path(path) for job in jobs for path in job.outputs]
    manifest = Manifest(
        format=FORMAT,
        study=study.config.name,
        methods=list(study.methods),
        seeds=study.config.seeds,
        rounds=study.config.rounds,
        # Also of the start, because arms are made anew when the start is.
        made=made_with(study, exchanged_jobs(study, results, start=True)),
        shared=shared_hashes(results),
        packages=provenance("", study.env.name)["packages"],
        revision=revision(),
        files={
            path.relative_to(results).as_posix(): sha256(path)
            for path in tqdm(files, desc="hash", unit="file", disable=None)
        },
        contents={
            path.relative_to(results).as_posix(): content_hash(path)
            for path in outputs
            if path.suffix == ".json"
        },
    )
    # Results in Snakemake's cache are links; the files themselves are packed.
    with atomic_file(target) as scratch, tarfile.open(scratch, "w", dereference=True) as archive:
        text = (manifest.model_dump_json(indent=1) + "\n").encode()
        for name, content in ((NAME, text), (CHECKSUM, checksum_text(text).encode())):
            head = tarfile.TarInfo(name)
            head.size = len(content)
            archive.addfile(head, io.BytesIO(content))
        for path in tqdm(files, desc="export", unit="file", disable=None):
            archive.add(path, arcname=path.relative_to(results).as_posix(), filter=_anonymous)
    return manifest


def _extras(job: StudyJob, results: Path) -> list[Path]:
    """The log and benchmark of a job, where they exist.

    If the job's results were copied from another study, its benchmark times the copy, not the job,
    so it is left out.
    """
    folder = results / job_folder(Path(job.outputs[0]).relative_to(results).as_posix())
    log, benchmark = extras(job, results)
    telling = [log] if was_taken(folder) else [log, benchmark]
    return [path for path in telling if path.is_file()]


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out who packed the file."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def read_manifest(archive: Path) -> Manifest:
    """What an archive says of itself.

    Raises:
        UserError: it is missing, damaged, or not an archive that `hgrpo.cli.export` wrote.
    """
    try:
        with tarfile.open(archive, "r:") as opened:
            first = opened.next()
            if first is None or first.name != NAME or first.size > _LARGEST_MANIFEST:
                raise tarfile.ReadError(f"{NAME} is not its first file")
            text = opened.extractfile(first).read()
            second = opened.next()
            checked = second is not None and second.name == CHECKSUM
            # Before the manifest is parsed: a damaged byte may be anywhere in it, also in `format`.
            if checked and opened.extractfile(second).read() != checksum_text(text).encode():
                raise UserError(f"{archive}: {_DAMAGED}")
        manifest = Manifest.model_validate_json(text)
        if manifest.format >= CHECKED_SINCE and not checked:
            raise UserError(f"{archive}: {CHECKSUM}: missing; ask for the archive again")
        return manifest
    except FileNotFoundError:
        raise UserError(f"{archive}: no such file") from None
    except ValidationError as error:
        details = error.errors()[0]
        where = ".".join(map(str, details["loc"]))
        raise UserError(f"{archive}: {NAME}: {where}: {details['msg']}") from None
    except (tarfile.TarError, OSError) as error:
        raise UserError(
            f"{archive}: not an archive that hgrpo.cli.export wrote ({error})"
        ) from None


def unpack(archive: Path, manifest: Manifest, results: Path) -> list[str]:
    """Put the archive's files into the study's results; all are checked before the first is placed.

    Returns:
        Paths, below the results, of the files that were not there before.

    Raises:
        UserError: a file is damaged, missing, or not in the manifest.
    """
    for left_over in results.glob(f"{_SCRATCH}*"):  # of an import that was killed
        shutil.rmtree(left_over, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=results) as folder:
        scratch = Path(folder)
        _extract(archive, manifest, scratch)
        new = [name for name in manifest.files if not (results / name).is_file()]
        # First the record: of an import that is killed, it must know the files that are in place.
        record_import(archive, manifest, results, new)
        for name in tqdm(new, desc="import", unit="file", disable=None):
            target = results / name
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(scratch / name, target)
    return new


def _extract(archive: Path, manifest: Manifest, scratch: Path) -> None:
    left = dict(manifest.files)
    try:
        with tarfile.open(archive, "r:") as opened:
            for member in tqdm(opened, desc="check", unit="file", disable=None):
                if member.name in (NAME, CHECKSUM):
                    continue
                if not member.isfile() or member.name not in left:
                    raise UserError(f"{archive}: {member.name}: not in {NAME}")
                opened.extract(member, scratch, filter="data")
                if sha256(scratch / member.name) != left.pop(member.name):
                    raise UserError(f"{archive}: {member.name}: damaged")
    except tarfile.TarError as error:
        raise UserError(f"{archive}: damaged archive ({error})") from None
    for name in left:
        raise UserError(f"{archive}: {name}: missing; the archive is cut off")
