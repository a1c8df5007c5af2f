"""Merge the episodes of all evaluations into one table and check it.

The stage fails if an arm is missing, an episode occurs twice, or evaluations used different panels.

Example:
  python -m hgrpo.cli.stage merge --config '{"methods": ["SFTOnly", "flatGRPO"]}' \\
      --out results/bakeoff/report/episodes.parquet results/bakeoff/eval/*/*/*/episodes.parquet
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo import parquet
from hgrpo.atomic import atomic_file
from hgrpo.config.strict import Strict
from hgrpo.errors import UserError
from hgrpo.stages import files
from hgrpo.stages.paths import Job, file

if TYPE_CHECKING:
    from hgrpo.study.study import Study

FOLDER = "report"
JOB: tuple[str, ...] = ()
OUTPUTS = {"merged": "episodes.parquet"}
RESOURCES = "report"
USES: tuple[str, ...] = ()


class Settings(Strict):
    """The arms whose episodes must be present."""

    methods: list[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Files and folders in the options of the command."""

    out: Path = file("merged", "Parquet file to write")
    episodes: list[Path] = file("episodes", "episodes.parquet files", many=True)


def from_study(study: "Study", method: str | None = None) -> dict:
    """Names of all arms."""
    return {"methods": list(study.methods)}


def inputs(study: "Study", job: Job) -> dict:
    """The episodes of every evaluation."""
    return {"episodes": files.episodes(study)}


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Read and check the episodes, and write the table."""
    from hgrpo.evaluation.merge import merge_episodes

    frame = merge_episodes(paths.episodes, settings.methods)
    if others := sorted(set(frame["method"]).difference(settings.methods or frame["method"])):
        raise UserError(f"--episodes: {', '.join(others)}: missing in `methods` of --config")
    with atomic_file(paths.out) as path:
        frame.to_parquet(path, index=False, **parquet.WRITE)
    print(f"{len(frame)} episodes of {frame['method'].nunique()} arms: {paths.out}")
