"""Download and verify the official data files of an environment.

Interrupted downloads are resumed. Sizes and hashes are verified if known. The stage runs on the
submitting machine instead of a compute node.

Example:
  python -m hgrpo.cli.stage fetch_assets --config configs/envs/webshop-small.yaml --out data
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.atomic import atomic_file, write_json
from hgrpo.config.strict import Strict
from hgrpo.games.kinds import load
from hgrpo.stages.files import downloads
from hgrpo.stages.paths import Job, file_or_section, folder
from hgrpo.stages.sections import Env

if TYPE_CHECKING:
    from hgrpo.study.study import Study

FOLDER = "data"
JOB: tuple[str, ...] = ()
OUTPUTS = {"files": "files.json"}
RESOURCES: dict[str, int] = {}
USES = ("env", "assets", "expert")
from_whole_study = file_or_section


class Settings(Strict):
    """The environment, including the settings of its expert."""

    env: Env


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Folder in the options of the command."""

    out: Path = folder("files", "output folder for the list of files")


def needed(study: "Study") -> bool:
    """Whether the study's environment downloads files."""
    return downloads(study)


def from_study(study: "Study", method: str | None = None) -> dict:
    """The environment, including the settings of its expert."""
    return {"env": study.env.model_dump(mode="json")}


def inputs(study: "Study", job: Job) -> dict:
    """No inputs, because this stage does not read files of other stages."""
    return {}


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Download and check the files, and record their names, sizes and hashes."""
    environment = load(settings.env.name)
    by_use = {
        "tasks": environment.task_data_files(settings.env),
        "demonstrations": environment.demonstration_data_files(settings.env),
    }
    paths.out.mkdir(parents=True, exist_ok=True)
    with atomic_file(paths.out / OUTPUTS["files"]) as path:
        write_json(path, by_use)
    files = [file for each in by_use.values() for file in each]
    for file in files:
        print(f"{file['name']}: {file['size']:,} bytes, SHA-256 {file['sha256']}")
    if not files:
        print(f"{settings.env.name}: nothing to download")
