"""Pack many files of a stage into one archive, as a single output of a Snakemake rule.

The first job that reads the archive unpacks it into a folder next to it or, if that is not
writable, in TMPDIR. Later jobs share this folder.
"""

import errno
import fcntl
import gzip
import hashlib
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from hgrpo.atomic import atomic_folder
from hgrpo.errors import UserError

_END = bytes(2 * tarfile.BLOCKSIZE)
# Compression level 1 makes a folder of games 11 times smaller. Higher levels gain little.
_LEVEL = 1


def pack(folder: Path, names: Iterable[str], target: Path) -> None:
    """Archive the files and folders `names` in `folder`; equal files give identical archives.

    The archive is compressed because Snakemake hashes it after every job that reads it.
    """
    with (
        target.open("wb") as file,
        _compressed(file) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in sorted(names):
            archive.add(folder / name, arcname=name, filter=without_origin)


def _compressed(file: IO[bytes]) -> gzip.GzipFile:
    return gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=file, mtime=0)


def without_origin(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Clear the metadata that depends on the machine: times, owners and permissions."""
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.isdir() else 0o644
    return member


def unpacked(archive: Path, beside: Iterable[str] = ()) -> Path:
    """Return a folder with the files of an archive. The first process unpacks them; others wait.

    Args:
        archive: an archive that `pack` wrote.
        beside: names of files next to the archive. The folder contains a link to each of them.

    Raises:
        UserError: the archive is missing, is damaged or contains a path outside the folder; a file
            of `beside` is missing; or no folder is writable.
    """
    archive = Path(archive)
    try:
        stamp = archive.stat()
    except FileNotFoundError:
        raise UserError(f"{archive}: missing file; run the stage that writes it first") from None
    stem = archive.name.partition(".")[0]
    name = f"{stem}-{stamp.st_size:x}-{stamp.st_mtime_ns:x}"
    for home in (archive.parent, _private_folder(archive)):
        try:
            return _unpacked(archive, home / f".{stem}" / name, tuple(beside))
        except PermissionError:
            continue  # The folder belongs to another user.
        except OSError as error:
            if error.errno != errno.EROFS:
                raise
    raise UserError(f"{archive}: cannot unpack it: its folder and the folder TMPDIR are read-only")


def _private_folder(archive: Path) -> Path:
    place = hashlib.sha256(os.fsencode(archive.parent.resolve())).hexdigest()[:16]
    return Path(tempfile.gettempdir(), f"hgrpo-{os.getuid()}", place)


def _unpacked(archive: Path, folder: Path, beside: tuple[str, ...]) -> Path:
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            for old in folder.parent.iterdir():
                if old.is_dir():
                    shutil.rmtree(old, ignore_errors=True)
            with atomic_folder(folder, sync_each=False) as scratch:
                _extract(archive, scratch)
                for name in beside:
                    source = archive.with_name(name)
                    if not source.is_file():
                        raise UserError(f"{source}: missing, although {archive.name} requires it")
                    # The link is relative, so that results can be moved.
                    (scratch / name).symlink_to(os.path.relpath(source, folder.resolve()))
    return folder


def _extract(archive: Path, folder: Path) -> None:
    try:
        with gzip.open(archive) as packed, tarfile.open(fileobj=packed, mode="r:") as opened:
            opened.extractall(folder, filter="data")
            # tarfile stops without an error at a damaged or truncated header. A complete archive
            # ends with two empty blocks, so check for them. Reading to the end also makes gzip
            # verify its checksum.
            packed.seek(opened.offset)
            if not packed.read().startswith(_END):
                raise tarfile.ReadError("truncated, or one of its headers is damaged")
    except (tarfile.TarError, EOFError, ValueError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{archive}: damaged archive ({error}); delete it and run again") from None
