"""Pack finished jobs of a study into one archive."""

import io
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from tqdm import tqdm

from hgrpo.atomic import atomic_file
from hgrpo.errors import UserError
from hgrpo.provenance import provenance, revision
from hgrpo.study.study import Study
from hgrpo.workflow.exchange.manifest import (
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
    sha256,
    shared_hashes,
)
from hgrpo.workflow.planning.jobs import Job
from hgrpo.workflow.reuse import was_taken
from hgrpo.workflow.watch.jobs import StudyJob


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
