"""Take an exported archive into a study, if its results belong there."""

import os
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
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
    made_with,
    sha256,
    shared_hashes,
)

_LARGEST_MANIFEST = 1 << 28


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


def check_belongs(archive: Path, manifest: Manifest, study: Study, results: Path) -> None:
    """Refuse results that were made with other settings, code, tasks, base or SFT policy.

    Args:
        study: the local study, with the methods, seeds and rounds of the archive.
        results: results/<study>.

    Raises:
        UserError: one line per difference. Each names the arm, the stage and the key.
    """
    lines = [
        f"{arm or 'all arms'}, {stage}: {line}"
        for stage, arms in manifest.made.items()
        for arm, line in _other(arms, made_with(study, [(stage, arm) for arm in arms])[stage])
    ]
    here = shared_hashes(results)
    for name, path in SHARED.items():
        if name not in here and path not in manifest.files:
            lines.append(
                f"{name}: {results / path} is not there yet; make it first (snakemake sft), or ask "
                "for an archive with --start"
            )
        elif here.get(name, manifest.shared.get(name)) != manifest.shared.get(name):
            lines.append(f"{name}: {path} differs from {results / path}")
    for name in manifest.files:
        there = results / name
        if there.is_file() and _is_result(name) and sha256(there) != manifest.files[name]:
            lines.append(
                f"{there}: here are other results of the same job; move them away, or import other "
                "arms or seeds"
            )
            break
    if lines:
        raise UserError("\n".join(f"{archive}: {line}" for line in dict.fromkeys(lines)))


def _other(theirs: Mapping[str, Made], ours: Mapping[str, Made]) -> Iterable[tuple[str, str]]:
    for arm, made in theirs.items():
        for line in differences(made.settings, ours[arm].settings):
            yield arm, line
        if made.code != ours[arm].code:
            yield (
                arm,
                f"code {made.code} there, {ours[arm].code} here; check out the same revision",
            )


def unpack(archive: Path, manifest: Manifest, results: Path) -> list[str]:
    """Put the archive's files into the study's results; all are checked before the first is placed.

    Returns:
        Paths, below the results, of the files that were not there before.

    Raises:
        UserError: a file is damaged, missing, or not in the manifest.
    """
    with tempfile.TemporaryDirectory(prefix=".import-", dir=results) as folder:
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
