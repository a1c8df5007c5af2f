"""Merge the episodes of every evaluation into one checked table.

The stage refuses missing arms, episodes evaluated twice and evaluations on different panels, and
names them.

Example:
  python -m hgrpo.cli.merge --config '{"methods": ["SFTOnly", "flatGRPO"]}' \\
      --out results/bakeoff/report/episodes.parquet results/bakeoff/eval/*/*/*/episodes.parquet
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.atomic import atomic_file
from hgrpo.config.strict import Strict
from hgrpo.stages import files
from hgrpo.stages.job import Job
from hgrpo.stages.paths import file

if TYPE_CHECKING:
    from hgrpo.study.study import Study

FOLDER = "report"
JOB: tuple[str, ...] = ()
OUTPUTS = {"merged": "episodes.parquet"}
RESOURCES = "report"


class Settings(Strict):
    """The arms whose episodes must be present."""

    methods: list[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Paths:
    """The command's files."""

    out: Path = file("merged", "Parquet file to write")
    episodes: list[Path] = file("episodes", "episodes.parquet files", many=True, positional=True)


def from_study(study: "Study", method: str | None = None) -> dict:
    """Names of the arms."""
    return {"methods": list(study.methods)}


def from_whole_study(given: Mapping, job: Job) -> dict:
    """Take the arms' names from a resolved study, which maps them to the arms' settings."""
    methods = given.get("methods")
    return {**given, "methods": list(methods)} if isinstance(methods, Mapping) else dict(given)


def inputs(study: "Study", job: Job) -> dict:
    """Every evaluation's episodes."""
    return {"episodes": files.episodes(study)}


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Read and check the episodes, and write the table."""
    from hgrpo.evaluation.merge import merge_episodes

    frame = merge_episodes(paths.episodes, settings.methods)
    with atomic_file(paths.out) as path:
        frame.to_parquet(path, compression="zstd", index=False)
    print(f"{len(frame)} episodes of {frame['method'].nunique()} arms: {paths.out}")
