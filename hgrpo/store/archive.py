"""Finished jobs as one archive, for a colleague's store: nothing there is ever overwritten."""

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
from hgrpo.errors import UserError
from hgrpo.store.entry import contents, note_contents, read_made, sha256
from hgrpo.store.plan import KEY, MADE, STORE, Planned

_SETTINGS = "settings"
# The parts of a record that the key is the hash of.
_HASHED = ("stage", "settings", "code", "user_files", "job", "inputs")


def pack(jobs: Iterable[Planned], target: Path) -> list[str]:
    """Write finished jobs, with all that they were made from, into an archive; return their keys.

    Raises:
        UserError: a job has not finished, or a file of it is not what the job wrote.
    """
    jobs = list(jobs)
    if unfinished := [each.name for each in jobs if not each.made]:
        raise UserError(f"{unfinished[0]}: not finished; run the study first, or export other arms")
    keys = sorted(with_ancestors(each.key for each in jobs))
    with atomic_file(target) as scratch, tarfile.open(scratch, "w") as archive:
        for key in tqdm(keys, desc="export", unit="job", disable=None):
            made = read_made(STORE / key)
            settings = f"{_SETTINGS}/{made['settings']}.json"
            if settings not in archive.getnames():
                archive.add(STORE / settings, settings, filter=without_origin)
            for name, digest in made["files"].items():
                path = STORE / key / name
                if not path.is_file() or sha256(path) != digest:
                    raise UserError(f"{path}: not what the job wrote")
                archive.add(path, f"{key}/{name}", filter=without_origin)
            # Last, as in the store: a folder without this file holds no result.
            archive.add(STORE / key / MADE, f"{key}/{MADE}", filter=without_origin)
    return keys


def with_ancestors(keys: Iterable[str]) -> set[str]:
    """The keys, and those of all finished jobs that they were made from."""
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
    """Take the jobs of an archive into the store.

    Returns:
        Keys of the jobs that are new here, and of those that were here before.

    Raises:
        UserError: the archive is damaged or holds something else, or a job in it was made from
            other contents than the results of the same name here. Then nothing is taken.
    """
    STORE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".import-", dir=STORE) as scratch:
        place = Path(scratch)
        _extract(archive, place)
        keys = sorted(path.parent.name for path in place.glob(f"*/{MADE}"))
        try:
            mades = {key: _read(place / key) for key in keys}
            _check_whole(mades, place)
            for key in keys:
                _check_inputs(mades[key], archive)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            damage = f"damaged, or edited ({error}); ask for the archive again"
            raise UserError(f"{archive}: {damage}") from None
        # A result whose files were deleted is new again.
        new = [key for key in keys if not _files(STORE / key) >= {MADE, *mades[key]["files"]}]
        for path in sorted((place / _SETTINGS).glob("*.json")):
            (STORE / _SETTINGS).mkdir(exist_ok=True)
            path.replace(STORE / _SETTINGS / path.name)
        for key in new:
            shutil.rmtree(STORE / key, ignore_errors=True)  # an unfinished job
            (place / key).replace(STORE / key)
            note_contents(mades[key])
    return new, [key for key in keys if key not in new]


def _extract(archive: Path, place: Path) -> None:
    """Unpack an archive, whose names must be those of results."""
    name = re.compile(rf"({KEY}/[^/].*|{_SETTINGS}/{KEY}\.json)")
    try:
        with tarfile.open(archive, "r:") as opened:
            for member in tqdm(opened, desc="import", unit="file", disable=None):
                if not member.isreg() or not name.fullmatch(member.name):
                    raise UserError(f"{archive}: {member.name}: no file of a result")
                opened.extract(member, place, filter="data")
    except FileNotFoundError:
        raise UserError(f"{archive}: no such file") from None
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise UserError(f"{archive}: damaged archive ({error})") from None


def _files(entry: Path) -> set[str]:
    return {path.relative_to(entry).as_posix() for path in entry.rglob("*") if path.is_file()}


def _read(entry: Path) -> dict:
    """The record of a job in an archive, whose key and files are checked.

    Raises:
        ValueError, LookupError, TypeError: the record is damaged, or a file is not what it lists.
    """
    made = json.loads((entry / MADE).read_bytes())
    if _files(entry) != {*made["files"], MADE}:
        raise ValueError(f"{entry.name}: its files are not those that it lists")
    if settings_digest({part: made[part] for part in _HASHED}) != entry.name:
        raise ValueError(f"{entry.name}: its key is another one")
    if made["contents"] is not None and not re.fullmatch(KEY, made["contents"]):
        raise ValueError(f"{entry.name}: contents")
    for name, digest in made["files"].items():
        if sha256(entry / name) != digest:
            raise ValueError(f"{entry.name}/{name}: not what the job wrote")
    return made


def _check_whole(mades: dict[str, dict], place: Path) -> None:
    """Refuse an archive that lacks an ancestor of a job, or holds other settings."""
    inputs = [path for made in mades.values() for each in made["inputs"].values() for path in each]
    named = {path.partition("/")[0] for path in inputs} | {path.name for path in place.iterdir()}
    lacking = named - mades.keys() - {_SETTINGS}
    if any(not (STORE / key / MADE).is_file() for key in lacking):
        raise ValueError("a job of it is missing")
    for path in (place / _SETTINGS).glob("*"):
        if settings_digest(json.loads(path.read_bytes())) != path.stem:
            raise ValueError(f"{_SETTINGS}/{path.name}")


def _check_inputs(made: dict, archive: Path) -> None:
    """Refuse a job that was made from other contents than those with the same key here.

    Two machines can make different weights from the same settings and code.
    """
    here = contents(made)
    if here is not None and made["contents"] not in (None, here):
        run = " ".join(f"{name} {value}" for name, value in made["job"].items() if value)
        raise UserError(
            f"{archive}: {made['stage']} {run}: made from other inputs than the results here, "
            "such as another SFT policy; import the archive into an empty store"
        )
