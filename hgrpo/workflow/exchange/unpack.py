"""Take an exported archive into a study, if its results belong there."""

import os
import shutil
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError
from tqdm import tqdm

from hgrpo.errors import UserError
from hgrpo.study.study import Study
from hgrpo.workflow.exchange.manifest import (
    NAME,
    SHARED,
    Made,
    Manifest,
    differences,
    extras,
    made_with,
    sha256,
    shared_hashes,
)
from hgrpo.workflow.watch.jobs import StudyJob

_LARGEST_MANIFEST = 1 << 28
_SCRATCH = ".import-"
_Makings = Mapping[str, Mapping[str, Made]]


def read_manifest(archive: Path) -> Manifest:
    """What an archive says of itself.

    Raises:
        UserError: it is missing, or is not an archive that `hgrpo.cli.export` wrote.
    """
    try:
        with tarfile.open(archive, "r:") as opened:
            first = opened.next()
            if first is None or first.name != NAME or first.size > _LARGEST_MANIFEST:
                raise tarfile.ReadError(f"{NAME} is not its first file")
            return Manifest.model_validate_json(opened.extractfile(first).read())
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


def check_belongs(
    archive: Path, manifest: Manifest, study: Study, jobs: Sequence[StudyJob], results: Path
) -> None:
    """Refuse results that were made with other settings, code, tasks, base or SFT policy.

    Args:
        study: the local study, with the methods, seeds and rounds of the archive.
        jobs: its jobs whose results the archive should hold.
        results: results/<study>.

    Raises:
        UserError: one line per difference. Each names the arm, the stage and the key.
    """
    lines = [
        *_other_makings(manifest.made, made_with(study, jobs)),
        *_other_start(manifest, results),
    ]
    # Which files a job writes depends on its settings, so these come first.
    lines = lines or [*_other_files(manifest, jobs, results)] or _other_results(manifest, results)
    if lines:
        raise UserError("\n".join(f"{archive}: {line}" for line in dict.fromkeys(lines)))


def _other_makings(theirs: _Makings, ours: _Makings) -> list[str]:
    found = []
    for stage in dict.fromkeys((*theirs, *ours)):
        there, here = theirs.get(stage, {}), ours.get(stage, {})
        for arm in dict.fromkeys((*there, *here)):
            who = f"{arm or 'all arms'}, {stage}"
            if arm not in there or arm not in here:
                found.append(f"{who}: only {'here' if arm in here else 'there'}")
                continue
            settings = differences(there[arm].settings, here[arm].settings)
            found += [f"{who}: {line}" for line in settings]
            if there[arm].code != here[arm].code:
                found.append(
                    f"{who}: code {there[arm].code} there, {here[arm].code} here; check out the "
                    "same revision"
                )
    return found


def _other_start(manifest: Manifest, results: Path) -> list[str]:
    found, here = [], shared_hashes(results)
    for name, (path, _) in SHARED.items():
        if name not in here and path not in manifest.files:
            found.append(
                f"{name}: {results / path} is not there yet; make it first (snakemake sft), or ask "
                "for an archive with --start"
            )
        elif here.get(name, manifest.shared.get(name)) != manifest.shared.get(name):
            found.append(f"{name}: {path} differs from {results / path}")
    return found


def _other_files(manifest: Manifest, jobs: Sequence[StudyJob], results: Path) -> list[str]:
    """Files that the jobs do not write, and files of theirs that the archive lacks."""

    def below(paths: Sequence[Path]) -> set[str]:
        return {path.relative_to(results).as_posix() for path in paths}

    own = below([Path(path) for job in jobs for path in job.outputs])
    strange = manifest.files.keys() - own - below([p for job in jobs for p in extras(job, results)])
    return [
        *(f"{name}: no file of the exported jobs" for name in sorted(strange)[:1]),
        *(f"{name}: missing" for name in sorted(own - manifest.files.keys())[:1]),
    ]


def _other_results(manifest: Manifest, results: Path) -> list[str]:
    for name, digest in manifest.files.items():
        there = results / name
        if there.is_file() and _is_result(name) and sha256(there) != digest:
            return [
                f"{there}: here are other results of the same job; move them away, or import other "
                "arms or seeds"
            ]
    return []


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
                if member.name == NAME:
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


def _is_result(name: str) -> bool:
    """Whether a file is a job's output; logs and benchmarks differ from run to run."""
    return name.split("/")[0] not in ("logs", "benchmarks")
