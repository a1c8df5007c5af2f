"""Takes a job's results from another study in which an equal job has finished.

Two jobs are equal if `job_key` is: the same stage, settings, code, seed and round, the same bytes
in every input file, and the same packages, kind of processor and number of threads. A finished
job leaves a record beside its results: its key, and a SHA-256 of each file. An equal job of
another study copies the files and compares each copy with the record. Files are never linked,
because Snakemake sets the times of a job's outputs, and a link would change the other study's.

Jobs of one arm lie in the same place below results/<study>, so a record is looked for there only.
"""

import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from glob import escape
from pathlib import Path, PurePosixPath
from types import ModuleType

from pydantic import BaseModel, ValidationError, field_validator

from hgrpo.atomic import atomic_file, atomic_folder
from hgrpo.config.canonical import as_json
from hgrpo.config.strict import Strict
from hgrpo.errors import UserError
from hgrpo.provenance import provenance
from hgrpo.stages.job import Job

# The environment variable that names results/<study> to jobs; empty if nothing is to be taken.
REUSE_VARIABLE = "HGRPO_REUSE"
RECORD = ".finished.json"
_SWITCH = {"yes": True, "true": True, "no": False, "false": False}


class Record(Strict):
    """What a finished job leaves beside its results.

    Attributes:
        key: from `job_key`.
        files: path of each file, relative to the folder -> SHA-256.
        taken_from: the folder that the files were copied from; None if the job ran.
    """

    key: str
    files: dict[str, str]
    taken_from: str | None = None

    @field_validator("files")
    @classmethod
    def _stay_inside(cls, files: dict[str, str]) -> dict[str, str]:
        for name in files:
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise ValueError(f"{name}: outside of the folder")
        return files


def switch(given: object) -> bool:
    """The value of `--config reuse=`, which is yes or no.

    Raises:
        UserError: it is neither.
    """
    found = _SWITCH.get(str(given).lower())
    if found is None:
        raise UserError(f"command line: reuse: yes or no was expected, not {given!r}")
    return found


def was_taken(folder: Path) -> bool:
    """Whether the results in a job's folder were taken from another study."""
    record = _read(folder / RECORD)
    return record is not None and record.taken_from is not None


def job_key(
    stage: str, settings: Mapping, job: Job, files: Sequence[Path], machine: Mapping
) -> str:
    """Hash (64 hex digits) of all that decides what a job writes.

    Args:
        stage: name of the stage.
        settings: the settings that the stage reads, with every default filled in.
        job: seed, round and code, and the method where the stage reads its name.
        files: the input files, in the order in which the stage declares them. Their names and
            contents count, their folders do not.
        machine: from `machine`.

    Raises:
        UserError: a base model among the files is damaged.
        OSError: a file cannot be read.
    """
    inputs = [[path.name, _digest(path, files)] for path in files]
    known = {"settings": settings, "job": asdict(job), "inputs": inputs, "machine": machine}
    return hashlib.sha256(f"{stage}\0{as_json(known)}".encode()).hexdigest()


def _digest(path: Path, files: Sequence[Path]) -> str:
    """SHA-256 of a file; of a base model's weights, the digest that its summary records."""
    # Imported here: `was_taken` must work without the packages that read weights.
    from hgrpo.base_model.digest import SUMMARY, base_digest
    from hgrpo.base_model.safetensors_file import WEIGHTS

    if path.name == WEIGHTS and path.with_name(SUMMARY) in files:
        return base_digest(path.parent)
    return sha256(path)


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def machine(env: str | None) -> dict:
    """Versions of packages, processor, threads and GPUs, on which floating-point sums depend.

    Args:
        env: name of the environment, whose packages count too; None if the stage uses none.
    """
    found = provenance("", env)
    hardware = {name: found["hardware"][name] for name in ("machine", "processor", "threads")}
    files = Path("/proc/driver/nvidia/gpus").glob("*/information")
    gpus = {path.read_text(encoding="utf-8") for path in files}
    models = {line for text in gpus for line in text.splitlines() if line.startswith("Model:")}
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpu = {"models": sorted(models), "shown": None if chosen is None else chosen not in ("", "-1")}
    return {"packages": found["packages"], "python": found["python"], **hardware, "gpu": gpu}


@dataclass(frozen=True)
class ReusableJob:
    """A job whose results may be taken from another study, and may be taken by others.

    Attributes:
        study: results/<study> of the job.
        out: the folder that the job writes.
        key: from `job_key`.
    """

    study: Path
    out: Path
    key: str

    def take(self) -> bool:
        """Copy the results of an equal job, and say so; False if there is none."""
        place = self.out.relative_to(self.study)
        for path in sorted(self.study.parent.glob(f"*/{escape(str(place))}/{RECORD}")):
            record = _read(path)
            if path.parent != self.out and record is not None and record.key == self.key:
                try:
                    self._copy(path.parent, record.files)
                except (OSError, _DamagedError) as error:
                    print(f"not taken from {path.parent}: {error}")
                    continue
                print(f"taken from {path.parent}, where an equal job has finished")
                return True
        return False

    def _copy(self, source: Path, files: Mapping[str, str]) -> None:
        with atomic_folder(self.out) as out:
            for name, digest in files.items():
                (out / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source / name, out / name)
                if sha256(out / name) != digest:
                    raise _DamagedError(f"{name} is not what the job wrote")
            _write(out, Record(key=self.key, files=dict(files), taken_from=str(source)))

    def record(self) -> None:
        """Write the record of the job, which has ended well."""
        paths = [path.relative_to(self.out) for path in self.out.rglob("*") if path.is_file()]
        # Hidden files and folders are what other jobs unpack here.
        own = sorted(path for path in paths if not any(part[0] == "." for part in path.parts))
        files = {path.as_posix(): sha256(self.out / path) for path in own}
        _write(self.out, Record(key=self.key, files=files))


def reusable_job(
    stage: ModuleType, settings: BaseModel, job: Job, reads: Sequence[Path], out: Path
) -> ReusableJob | None:
    """The job as `ReusableJob`; None if it must run, or if the user turned reuse off.

    Args:
        stage: the stage's module. Its function `reusable` says whether `job_key` covers all that
            decides its results; without that function, the stage always runs.
        settings: the stage's settings.
        job: the job, with its code.
        reads: the job's input files.
        out: the folder that the job writes.

    Raises:
        UserError, OSError: as `job_key`.
    """
    # Processes that the job starts do not find the variable, so none of them takes anything.
    study = os.environ.pop(REUSE_VARIABLE, "")
    if not study or "reusable" not in vars(stage) or not stage.reusable(settings):
        return None
    given = settings.model_dump(mode="json")
    name = stage.__name__.rpartition(".")[2]
    env = (given.get("env") or {}).get("name")
    return ReusableJob(Path(study), out, job_key(name, given, job, reads, machine(env)))


class _DamagedError(Exception):
    """A file differs from its record."""


def _read(path: Path) -> Record | None:
    try:
        return Record.model_validate_json(path.read_bytes())
    except (OSError, ValueError, ValidationError):
        return None


def _write(folder: Path, record: Record) -> None:
    with atomic_file(folder / RECORD) as path:
        path.write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
