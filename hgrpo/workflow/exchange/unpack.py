"""Read an exported archive, and put its files into a study's results."""

import os
import shutil
import tarfile
import tempfile
from pathlib import Path

from pydantic import ValidationError
from tqdm import tqdm

from hgrpo.errors import UserError
from hgrpo.workflow.exchange.imports import record_import
from hgrpo.workflow.exchange.manifest import (
    CHECKED_SINCE,
    CHECKSUM,
    NAME,
    Manifest,
    checksum_text,
    sha256,
)

_LARGEST_MANIFEST = 1 << 28
_DAMAGED = (
    f"{NAME}: damaged, or edited after the export: it does not match {CHECKSUM}; ask for the "
    "archive again"
)
_SCRATCH = ".import-"


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
