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
from hgrpo.store.entry import HASHED, Record, contents, note_contents, read_made, sha256
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
            made = read_made(STORE / key)
            for part in _SHARED:
                name = f"{part}/{made[part]}.json"
                absent = part == "code" and not (STORE / name).is_file()  # an older import
                if not absent and name not in archive.getnames():
                    archive.add(STORE / name, name, filter=without_origin)
            for name, digest in made["files"].items():
                path = STORE / key / name
                if not path.is_file() or sha256(path) != digest:
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
            paths = [path for each in read_made(STORE / key)["inputs"].values() for path in each]
            waiting += {path.partition("/")[0] for path in paths}
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
        except (UserError, ValueError) as error:
            damage = f"damaged or edited ({str(error).splitlines()[0]}); get a new copy"
            raise UserError(f"{archive}: {damage}") from None
        for made in mades.values():
            _check_inputs(made, archive)
        # A result in the store with deleted files is replaced.
        new = [key for key in keys if not _files(STORE / key) >= {MADE, *mades[key]["files"]}]
        for path in (path for part in _SHARED for path in (place / part).glob("*.json")):
            target = STORE / path.relative_to(place)
            target.parent.mkdir(exist_ok=True)
            if not target.exists():
                path.replace(target)
        for key in new:
            shutil.rmtree(STORE / key, ignore_errors=True)  # remains of an incomplete result
            (place / key).replace(STORE / key)
            note_contents(mades[key])
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
    except FileNotFoundError:
        raise UserError(f"{archive}: no such file") from None
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise UserError(f"{archive}: damaged, or not an uncompressed .tar ({error})") from None


def _files(entry: Path) -> set[str]:
    return {path.relative_to(entry).as_posix() for path in entry.rglob("*") if path.is_file()}


def _read(entry: Path) -> dict:
    """Read the record of an unpacked job, and check the job's key and files against it."""
    made = validate(Record, json.loads((entry / MADE).read_bytes()), entry.name).model_dump()
    if _files(entry) != {*made["files"], MADE}:
        raise ValueError(f"{entry.name}: the files do not match made.json")
    if not made["key"] == entry.name == settings_digest({part: made[part] for part in HASHED}):
        raise ValueError(f"{entry.name}: the key does not match made.json")
    for name, digest in made["files"].items():
        if sha256(entry / name) != digest:
            raise ValueError(f"{entry.name}/{name} has changed since its job wrote it")
    return made


def _check_whole(mades: dict[str, dict], place: Path) -> None:
    """Raise ValueError if an ancestor of a job is missing, or if settings or inputs were edited."""
    inputs = [path for made in mades.values() for each in made["inputs"].values() for path in each]
    named = {path.partition("/")[0] for path in inputs} | {path.name for path in place.iterdir()}
    lacking = named - mades.keys() - {*_SHARED}
    if any(not (STORE / key / MADE).is_file() for key in lacking):
        raise ValueError("an ancestor of a job is missing")
    for made in mades.values():
        name = f"settings/{made['settings']}.json"
        if not any((folder / name).is_file() for folder in (place, STORE)):
            raise ValueError(f"{name} is missing")
    for path in (place / "settings").glob("*"):
        if settings_digest(json.loads(path.read_bytes())) != path.stem:
            raise ValueError(f"settings/{path.name}")
    for key, made in mades.items():
        if made["contents"] not in (None, contents(made, place)):
            raise ValueError(f"{key}: the hash of the inputs' contents is wrong")


def _check_inputs(made: dict, archive: Path) -> None:
    """Raise UserError if the store contains other versions of a job's inputs.

    Two versions have the same keys but different contents, because two machines can produce
    different weights from the same settings and code.
    """
    here = contents(made)
    if here is not None and made["contents"] not in (None, here):
        run = " ".join(f"{name} {value}" for name, value in made["job"].items() if value)
        raise UserError(
            f"{archive}: {made['stage']} {run}: the job's inputs, such as the SFT policy, differ "
            "from the versions in the store; import the archive into an empty store"
        )
