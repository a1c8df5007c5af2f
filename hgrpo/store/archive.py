"""Export finished jobs to an archive, and import them into another store."""

import json
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tqdm import tqdm

from hgrpo.archive import without_origin
from hgrpo.atomic import atomic_file
from hgrpo.config.canonical import settings_digest
from hgrpo.config.read import validate
from hgrpo.errors import UserError
from hgrpo.store import entry
from hgrpo.store.code import digest_of
from hgrpo.store.differences import as_planned
from hgrpo.store.plan import KEY, MADE, STORE, Planned

# Folders of files that several jobs share. Each file is named after its hash, which is stored in a
# job's record under the name of the folder.
_SHARED = ("settings", "code")


def pack(jobs: Iterable[Planned], target: Path) -> list[str]:
    """Write finished jobs and all their ancestors to an archive; return the keys of all these jobs.

    Raises:
        UserError: a job has not finished, or one of its files has changed since the job wrote it.
    """
    jobs = list(jobs)
    if unfinished := [each.name for each in jobs if not each.made]:
        raise UserError(f"{unfinished[0]}: not finished; run the study first, or export other arms")
    keys = sorted(with_ancestors(each.key for each in jobs))
    with atomic_file(target) as scratch, tarfile.open(scratch, "w") as archive:
        for key in tqdm(keys, desc="export", unit="job", disable=None):
            made = entry.read_made(STORE / key)
            for part in _SHARED:
                name = f"{part}/{made[part]}.json"
                if name not in archive.getnames():
                    archive.add(STORE / name, name, filter=without_origin)
            for name, digest in made["files"].items():
                path = STORE / key / name
                if not path.is_file() or entry.sha256(path) != digest:
                    raise UserError(f"{path}: the file has changed since its job wrote it")
                archive.add(path, f"{key}/{name}", filter=without_origin)
            # As in the store, the record comes last, because it marks the result as complete.
            archive.add(STORE / key / MADE, f"{key}/{MADE}", filter=without_origin)
    return keys


def with_ancestors(keys: Iterable[str]) -> set[str]:
    """Return `keys` and the keys of all finished ancestor jobs."""
    reached: set[str] = set()
    waiting = list(keys)
    while waiting:
        key = waiting.pop()
        if key not in reached and (STORE / key / MADE).is_file():
            reached.add(key)
            waiting += entry.sources(entry.read_made(STORE / key)).values()
    return reached


def unpack(archive: Path) -> tuple[list[str], list[str]]:
    """Import the jobs of an archive into the store.

    Returns:
        Keys of the imported jobs, and of the jobs that already existed in the store.

    Raises:
        UserError: the archive is damaged or contains no jobs, or the store contains other versions
            of a job's inputs. In these cases, nothing is imported.
    """
    STORE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".import-", dir=STORE) as scratch:
        place = Path(scratch)
        _extract(archive, place)
        keys = sorted(path.parent.name for path in place.glob(f"*/{MADE}"))
        if not keys:
            raise UserError(f"{archive}: contains no finished job")
        try:
            mades = {key: _read(place / key) for key in keys}
            _check_whole(mades, place)
        except (UserError, ValueError, AttributeError, RecursionError) as error:
            damage = f"damaged or edited, or of another version ({str(error).splitlines()[0]})"
            raise UserError(f"{archive}: {damage}; get a new copy") from None
        # A result in the store with deleted files is replaced.
        new = [key for key in keys if not _files(STORE / key) >= {MADE, *mades[key]["files"]}]
        here = entry.read_all()
        after = here | {key: mades[key] for key in new}
        for key in sorted(entry.stale(after) - entry.stale(here)):
            raise UserError(
                f"{archive}: {as_planned(after[key]).name}: the archive and the store contain "
                "different versions of its inputs, such as the SFT policy; use an empty store"
            )
        for path in (path for part in _SHARED for path in (place / part).glob("*.json")):
            target = STORE / path.relative_to(place)
            target.parent.mkdir(exist_ok=True)
            if not target.exists():
                path.replace(target)
        for key in new:
            shutil.rmtree(STORE / key, ignore_errors=True)  # remains of an incomplete result
            (place / key).replace(STORE / key)
        for key in new:  # compute the contents, because a record in an archive may be edited
            entry.add_to_index(mades[key] | {"contents": entry.contents(mades[key])})
    return new, [key for key in keys if key not in new]


def _extract(archive: Path, place: Path) -> None:
    """Unpack an archive; raise UserError if it contains files that do not belong to a result."""
    name = re.compile(rf"({KEY}/[^/].*|({'|'.join(_SHARED)})/{KEY}\.json)")
    try:
        with tarfile.open(archive, "r:") as opened:
            for member in tqdm(opened, desc="import", unit="file", disable=None):
                if not member.isreg() or not name.fullmatch(member.name):
                    raise UserError(f"{archive}: {member.name} does not belong to a result")
                opened.extract(member, place, filter="data")
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise UserError(f"{archive}: damaged, or not an uncompressed .tar ({error})") from None


def _files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def _read(folder: Path) -> dict:
    """Read the record of an unpacked job, and check the job's key and files against it."""
    read = json.loads((folder / MADE).read_bytes())
    made = validate(entry.Record, read, folder.name).model_dump()
    if _files(folder) != {*made["files"], MADE}:
        raise ValueError(f"{folder.name}: the files do not match made.json")
    key = settings_digest({part: made[part] for part in entry.HASHED})
    if not made["key"] == folder.name == key:
        raise ValueError(f"{folder.name}: the key does not match made.json")
    for name, digest in made["files"].items():
        if entry.sha256(folder / name) != digest:
            raise ValueError(f"{folder.name}/{name} has changed since its job wrote it")
    return made


def _check_whole(mades: dict[str, dict], place: Path) -> None:
    """Raise ValueError if an ancestor of a job is missing, or if settings or inputs were edited."""
    named = {key for made in mades.values() for key in entry.sources(made).values()}
    named |= {path.name for path in place.iterdir()}
    lacking = named - mades.keys() - {*_SHARED}
    if any(not (STORE / key / MADE).is_file() for key in lacking):
        raise ValueError("an ancestor of a job is missing")
    for made in mades.values():
        name = f"settings/{made['settings']}.json"
        if not any((folder / name).is_file() for folder in (place, STORE)):
            raise ValueError(f"{name} is missing")
    for part, digest in (("settings", settings_digest), ("code", digest_of)):
        for path in (place / part).glob("*"):
            if digest(json.loads(path.read_bytes())) != path.stem:
                raise ValueError(f"{part}/{path.name}")
