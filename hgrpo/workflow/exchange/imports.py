"""What an import leaves behind: which results came from which archive, and what made them.

Each import writes results/<study>/imports/<archive>-<hash>.json. The file stays when the results
go. So it counts only for a job whose files are still the imported ones.
"""

import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from hgrpo.atomic import atomic_file
from hgrpo.config.canonical import as_json
from hgrpo.config.strict import Strict
from hgrpo.errors import UserError
from hgrpo.stages.order import load
from hgrpo.study.study import Study
from hgrpo.workflow.exchange.manifest import START, Made, Manifest, is_result, job_folder
from hgrpo.workflow.reuse import sha256
from hgrpo.workflow.watch.jobs import study_jobs

FOLDER = "imports"
# What says which official data this machine has; nothing is lost if it is written anew.
_OF_THE_MACHINE = load("fetch_assets").FOLDER


class Import(Strict):
    """What came from one archive.

    Attributes:
        archive: the archive's file name.
        revision: git revision of the code that made the results; None if it is not known.
        version: version of the package hgrpo there; None if it is not known.
        made: as in the archive's `Manifest`.
        files: path below results/<study> -> SHA-256, of the results that the import placed.
    """

    archive: str
    revision: str | None
    version: str | None
    made: dict[str, dict[str, Made]]
    files: dict[str, str]

    @functools.cached_property
    def by_job(self) -> Mapping[str, Mapping[str, str]]:
        """A job's folder below results/<study> -> its part of `files`."""
        found: dict[str, dict[str, str]] = {}
        for name, digest in self.files.items():
            found.setdefault(job_folder(name), {})[name] = digest
        return found


def record_import(archive: Path, manifest: Manifest, results: Path, new: Iterable[str]) -> None:
    """Record the results that an import is about to place.

    The record of the same archive from before, such as from an import that was killed, is kept.

    Args:
        archive: the archive.
        manifest: its manifest.
        results: results/<study>.
        new: path below `results` of each file.
    """
    digest = hashlib.sha256(manifest.model_dump_json().encode()).hexdigest()[:12]
    path = results / FOLDER / f"{archive.stem}-{digest}.json"
    files = {
        name: manifest.files[name]
        for name in new
        if is_result(name) and job_folder(name) != _OF_THE_MACHINE
    }
    if path.is_file():
        files = _read(path).files | files
    if not files:
        return
    record = Import(
        archive=archive.name,
        revision=manifest.revision,
        version=manifest.packages.get("hgrpo"),
        made=manifest.made,
        files=files,
    )
    path.parent.mkdir(exist_ok=True)
    with atomic_file(path) as scratch:
        scratch.write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")


def read_imports(results: Path) -> list[Import]:
    """All imports into a study.

    Raises:
        UserError: a record is damaged.
    """
    return [_read(path) for path in sorted((results / FOLDER).glob("*.json"))]


def _read(path: Path) -> Import:
    try:
        return Import.model_validate_json(path.read_bytes())
    except ValidationError as error:
        details = error.errors()[0]
        where = ".".join(map(str, details["loc"]))
        raise UserError(
            f"{path}: {where}: {details['msg']}; this is no record of an import that this version "
            "wrote; move it away"
        ) from None


def origin(folder: str, results: Path, imports: Sequence[Import]) -> Import | None:
    """The import that a job's results came from; None if they did not, or were made anew since.

    Each job writes JSON files that hold seconds or say where it ran. So only these are compared,
    unless none is left, and weights need not be read.

    Args:
        folder: the job's folder, below `results`.
        results: results/<study>.
        imports: from `read_imports`.
    """
    for each in imports:
        files = each.by_job.get(folder, {})
        there = [name for name in files if (results / name).is_file()]
        telling = [name for name in there if name.endswith(".json")] or there
        if telling and all(sha256(results / name) == files[name] for name in telling):
            return each
    return None


def imported(results: Path) -> Callable[[Path], bool]:
    """A function that says whether the results in a job's folder, below `results`, were imported.

    Raises:
        UserError: a record of an import is damaged.
    """
    imports = read_imports(results)
    return lambda folder: (
        origin(folder.relative_to(results).as_posix(), results, imports) is not None
    )


def imported_parts(study: Study, results: Path) -> str:
    """What of a study was imported, as JSON for the report.

    Returns:
        A list of {part, seeds, archive, revision}, empty if nothing was imported. `part` is an arm,
        or a stage before the arms. Only a trained arm has seeds.
    """
    imports = read_imports(results)
    if not imports:
        return as_json([])
    found: dict[tuple[str, str, str | None], dict[int, None]] = {}
    for job in study_jobs(study, results):
        if job.stage in (*START, "rl_round", "evaluate"):
            folder = job_folder(Path(job.outputs[0]).relative_to(results).as_posix())
            from_ = origin(folder, results, imports)
            if from_ is not None:
                part = (job.method or job.stage, from_.archive, from_.revision)
                found.setdefault(part, {}).update({job.seed: None} if job.round else {})
    parts = [
        {"part": part, "seeds": list(seeds), "archive": archive, "revision": revision}
        for (part, archive, revision), seeds in found.items()
    ]
    return as_json(parts)
