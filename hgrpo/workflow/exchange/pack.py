"""Pack finished jobs of a study into one archive."""

import io
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from tqdm import tqdm

from hgrpo.atomic import atomic_file
from hgrpo.errors import UserError
from hgrpo.provenance import provenance
from hgrpo.stages.order import belongs_to_an_arm
from hgrpo.study.study import Study
from hgrpo.workflow.exchange.manifest import (
    FORMAT,
    NAME,
    Manifest,
    made_with,
    sha256,
    shared_hashes,
)
from hgrpo.workflow.planning.jobs import Job

START = ("assets", "expert", "base", "sft")


def to_pack(jobs: Iterable[Job], start: bool) -> list[Job]:
    """The jobs whose results are exported: those of arms and, with `start`, those before them.

    Args:
        jobs: every job of the chosen arms, seeds and rounds.

    Raises:
        UserError: such a job is unfinished or out of date, or has lost a file.
    """
    chosen = [job for job in jobs if belongs_to_an_arm(job.stage) or (start and job.stage in START)]
    for job in chosen:
        if job.to_run or job.lost:
            raise UserError(
                f"{job.lost or job.folder}: not finished, or out of date; run the study first, or "
                "export other methods, seeds or rounds"
            )
    return chosen


def pack(study: Study, jobs: Sequence[Job], results: Path, target: Path) -> Manifest:
    """Write the archive, and return what it says of itself.

    Args:
        study: the study with the exported methods, seeds and rounds.
        jobs: from `to_pack`.
        results: results/<study>.
        target: the archive to write.
    """
    files = [path for job in jobs for path in _files(job, results)]
    arms = [(job.stage, job.arm if belongs_to_an_arm(job.stage) else "") for job in jobs]
    manifest = Manifest(
        format=FORMAT,
        study=study.config.name,
        methods=list(study.methods),
        seeds=study.config.seeds,
        rounds=study.config.rounds,
        made=made_with(study, arms),
        shared=shared_hashes(results),
        packages=provenance("", study.env.name)["packages"],
        files={
            path.relative_to(results).as_posix(): sha256(path)
            for path in tqdm(files, desc="hash", unit="file", disable=None)
        },
    )
    with atomic_file(target) as scratch, tarfile.open(scratch, "w") as archive:
        text = (manifest.model_dump_json(indent=1) + "\n").encode()
        head = tarfile.TarInfo(NAME)
        head.size = len(text)
        archive.addfile(head, io.BytesIO(text))
        for path in tqdm(files, desc="export", unit="file", disable=None):
            archive.add(path, arcname=path.relative_to(results).as_posix(), filter=_anonymous)
    return manifest


def _files(job: Job, results: Path) -> list[Path]:
    """A job's results, its log and its benchmark; hidden files are what other jobs unpack there."""
    folder = Path(job.folder)
    found = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part[0] == "." for part in path.relative_to(folder).parts)
    ]
    beside = (f"logs/{job.stage}/{job.name}.log", f"benchmarks/{job.stage}/{job.name}.jsonl")
    return found + [path for name in beside if (path := results / name).is_file()]


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out who packed the file."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
