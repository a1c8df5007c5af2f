"""Record the resolved study, the package versions and the hardware.

Example:
  python -m hgrpo.cli.config bakeoff > study.yaml
  python -m hgrpo.cli.stage study_config --config study.yaml --out results/bakeoff/config.yaml
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from pydantic import ConfigDict

from hgrpo.atomic import atomic_file
from hgrpo.config.strict import Strict
from hgrpo.provenance import provenance
from hgrpo.stages.paths import Job, file

if TYPE_CHECKING:
    from hgrpo.study.study import Study

FOLDER = ""
JOB: tuple[str, ...] = ()
OUTPUTS = {"config": "config.yaml"}
RESOURCES: dict[str, int] = {}
USES: tuple[str, ...] = ()


class Settings(Strict):
    """The resolved study; its keys are not validated."""

    model_config = ConfigDict(extra="allow", frozen=True)


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Files and folders in the options of the command."""

    out: Path = file("config", "file to write")


def from_study(study: "Study", method: str | None = None) -> dict:
    """The whole resolved study."""
    return study.resolved()


def inputs(study: "Study", job: Job) -> dict:
    """No inputs, because the stage reads no files."""
    return {}


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Write the study, the package versions and the hardware to a file."""
    study = settings.model_extra or {}
    env = study.get("env") or {}
    written = study | {"provenance": provenance(job.code, env.get("name"))}
    with atomic_file(paths.out) as path:
        path.write_text(yaml.safe_dump(written, sort_keys=False), encoding="utf-8")
