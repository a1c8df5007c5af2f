"""Generate or collect the tasks of the study's environment, and split them into panels.

The environment validates each task before adding it to a panel. If configured, it downloads its
data files first.

Example:
  python -m hgrpo.cli.stage assets --config results/bakeoff/config.yaml --seed 0 \\
      --out results/bakeoff/assets
"""

import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.archive import pack
from hgrpo.atomic import atomic_folder, write_json
from hgrpo.config.strict import Strict
from hgrpo.errors import UserError
from hgrpo.games.base import Panels, Task
from hgrpo.games.kinds import load
from hgrpo.games.panels import check_filled, panel_hash, write_panels
from hgrpo.provenance import provenance
from hgrpo.stages.files import data_files as fetched
from hgrpo.stages.paths import Job, file_or_section, folder
from hgrpo.stages.sections import Env

if TYPE_CHECKING:
    from hgrpo.study.study import Study

FOLDER = "assets"
JOB = ("seed",)
OUTPUTS = {
    "panels": "panels.json",
    "tasks": "tasks.tar.gz",
    "manifest": "manifest.json",
}
RESOURCES: dict[str, int] = {}
USES = ("env", "assets")
from_whole_study = file_or_section


class Settings(Strict):
    """The environment, and the minimum sizes of the panels whose size is not configured."""

    env: Env
    study: str | None = None
    evaluation: dict[str, object] | None = None


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Folders in the options of the command."""

    out: Path = folder("panels", "output folder")


def from_study(study: "Study", method: str | None = None) -> dict:
    """Return the settings of this stage; the section `expert` of the environment is omitted."""
    sizes = {
        f"{panel}_games": size
        for panel, size in study.config.evaluation.panel_sizes.items()
        if study.env.panels.model_dump()[panel] is None
    }
    env = study.env.model_dump(mode="json", exclude={"expert"})
    return {"env": env} | ({"study": study.config.name, "evaluation": sizes} if sizes else {})


def inputs(study: "Study", job: Job) -> dict:
    """The list of downloaded data files, if the environment downloads any."""
    return fetched(study)


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Make the tasks; write the panels, an archive of the task files, and a manifest."""
    environment = load(settings.env.name)
    skipped: Counter[str] = Counter()
    panels: dict[str, list[Task]] = {panel: [] for panel in settings.env.panels.sizes}
    data_files = environment.task_data_files(settings.env)
    with atomic_folder(paths.out) as out:
        made = out / "made"
        made.mkdir()
        try:
            for split, task in environment.make_tasks(settings.env, job.seed, made, skipped):
                panels[split].append(task)
            check_filled(panels, settings.env.panels.sizes)
            check_sizes(panels, settings)
        except UserError as error:
            bad = [f"; excluded: {n} {why}" for why, n in skipped.items() if why.startswith("bad ")]
            raise UserError(f"{error}{''.join(bad)}") from None
        write_panels(out / "panels.json", panels)
        pack(made, environment.task_files, out / "tasks.tar.gz")
        shutil.rmtree(made)
        manifest = {
            "env": settings.env.model_dump(mode="json", exclude={"expert"}),
            "seed": job.seed,
            "source": settings.env.source,
            "data_files": data_files,
            "user_files": environment.user_files_digest(settings.env, "assets"),
            "panels": {
                split: {
                    "tasks": len(tasks),
                    "types": dict(sorted(Counter(task.task_type for task in tasks).items())),
                    "hash": panel_hash(tasks),
                }
                for split, tasks in panels.items()
            },
            "skipped": {reason: count for reason, count in sorted(skipped.items()) if count},
        } | provenance(job.code, settings.env.name)
        write_json(out / "manifest.json", manifest)
    for split, row in manifest["panels"].items():
        counts = ", ".join(f"{kind} {count}" for kind, count in row["types"].items())
        print(f"{split}: {row['tasks']} tasks ({counts})")
    for reason, count in manifest["skipped"].items():
        print(f"excluded or noted: {count} ({reason})")


def check_sizes(panels: Panels, settings: Settings) -> None:
    """Raise UserError if a panel has fewer tasks than the evaluation requires."""
    source = f"configs/studies/{settings.study}.yaml" if settings.study else "--config"
    for panel in ("validation", "test"):
        key, tasks = f"{panel}_games", len(panels[panel])
        games = (settings.evaluation or {}).get(key, 0)
        if games > tasks:
            raise UserError(
                f"{source}: evaluation.{key}: {games} games requested, but the {panel} panel has "
                f"{tasks}"
            )
