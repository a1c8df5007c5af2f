"""Collect demonstrations on the training panel from a scripted expert or human recordings.

Example:
  python -m hgrpo.cli.stage expert --config results/bakeoff/config.yaml --seed 0 \\
      --assets results/bakeoff/assets --out results/bakeoff/expert
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo import parquet
from hgrpo.archive import unpacked
from hgrpo.atomic import atomic_folder, write_json
from hgrpo.config.strict import Strict
from hgrpo.errors import UserError
from hgrpo.games.base import finite
from hgrpo.games.environment import EnvSettings
from hgrpo.games.kinds import load
from hgrpo.games.panels import read_panels
from hgrpo.progress import Bar, print_caution
from hgrpo.provenance import provenance
from hgrpo.stages.files import PANELS, TASKS, data_files
from hgrpo.stages.paths import Job, file_or_section, folder
from hgrpo.stages.sections import Env

if TYPE_CHECKING:
    from hgrpo.study.study import Study

FOLDER = "expert"
JOB = ("seed",)
OUTPUTS = {
    "trajectories": "trajectories.parquet",
    "summary": "summary.json",
}
RESOURCES: dict[str, int] = {}
USES = ("env", "expert")
from_whole_study = file_or_section
# The ceiling is measured on the test panel, on which the arms are evaluated too.
_CEILING_PANEL, _CEILING_TASKS = "test", 1000


class Settings(Strict):
    """The environment, including the settings of its expert."""

    env: Env


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Folders in the options of the command."""

    assets: Path = folder("panels", "folder of the assets stage")
    out: Path = folder("summary", "output folder")


def from_study(study: "Study", method: str | None = None) -> dict:
    """The environment, including the settings of its expert."""
    return {"env": study.env.model_dump(mode="json")}


def inputs(study: "Study", job: Job) -> dict:
    """The tasks, their panels and, if the environment downloads data files, a list of the files."""
    return {"panels": PANELS, "tasks": TASKS, **data_files(study)}


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Collect demonstrations, and write them with a summary of their success."""
    from hgrpo.evaluation.cautions import poor_expert

    env, environment = settings.env, load(settings.env.name)
    read = environment.demonstration_data_files(env)
    panels = read_panels(paths.assets / "panels.json")
    tasks = unpacked(paths.assets / "tasks.tar.gz")
    skipped: Counter[str] = Counter()
    train = {(game.task_id, game.content_hash) for game in panels["train"]}
    rows = []
    with Bar(total=env.expert.trajectories, desc="expert", unit="trajectory") as bar:
        for row in environment.demonstrate(env, tasks, panels, job.seed, skipped):
            bar.update()
            _check(row, train)
            if env.expert.min_return is not None and row["score"] < env.expert.min_return:
                skipped["return below expert.min_return"] += 1
            else:
                rows.append(row)
    if not rows:
        raise UserError(f"{paths.assets}: no demonstration was collected: {dict(skipped)}")
    tested = panels[_CEILING_PANEL][:_CEILING_TASKS]
    ceiling = environment.ceiling(env, tasks, tested, job.seed)
    summary = {
        "trajectories": len(rows),
        "sources": dict(sorted(Counter(row["source"] for row in rows).items())),
        "data_files": read,
        "user_files": environment.user_files_digest(env, "expert"),
        "turn_cap": env.turn_cap,
        "expert_turn_cap": env.expert.turn_cap,
        "success": success(rows, env.turn_cap),
        "informed": success(ceiling, env.turn_cap) if ceiling else None,
        "informed_is": environment.informed,
        "informed_panel": _CEILING_PANEL,
        "progress": {
            "expert": progress_and_reward(rows),
            "informed": progress_and_reward(ceiling or []),
        },
        "skipped": dict(sorted(skipped.items())),
    } | provenance(job.code, settings.env.name)
    with atomic_folder(paths.out) as out:
        _write(rows, out / "trajectories.parquet")
        write_json(out / "summary.json", summary)
    _show_success("expert", summary["success"], env)
    if summary["informed"]:
        _show_success(f"ceiling: {environment.informed}", summary["informed"], env)
    for reason, count in summary["skipped"].items():
        print(f"excluded or noted: {count} ({reason})")
    if caution := poor_expert(summary["success"]["all"]["at_turn_cap"]):
        print_caution(caution)


def _check(row: Mapping, train: Collection[tuple[str, str]]) -> None:
    actions, where = row["actions"], f"demonstration of task {row['task_id']}"
    if (row["task_id"], row["content_hash"]) not in train:
        raise UserError(f"{where}: the panel `train` has no task with this id and content_hash")
    if row["n_turns"] != len(actions) or len(row["observations"]) != len(actions) + 1:
        raise UserError(
            f"{where}: n_turns is {row['n_turns']}, with {len(actions)} actions and "
            f"{len(row['observations'])} observations; expected n_turns actions and n_turns + 1 "
            "observations"
        )
    if not all(isinstance(action, str) and action.strip() for action in actions):
        raise UserError(f"{where}: an action is empty or not a string")


def _write(rows: list[dict], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            ("task_id", pa.string()),
            ("content_hash", pa.string()),
            ("task_type", pa.string()),
            ("source", pa.string()),
            ("goal", pa.string()),
            ("observations", pa.list_(pa.string())),
            ("actions", pa.list_(pa.string())),
            ("success", pa.bool_()),
            ("score", pa.float64()),
            ("n_turns", pa.int32()),
        ]
    )
    table = pa.Table.from_pylist(rows, schema=schema)
    pq.write_table(table, path, **parquet.WRITE)


def success(rows: list[dict], turn_cap: int) -> dict[str, dict]:
    """Success rates within `turn_cap` turns and over whole trajectories, by task type and overall.

    The key `score` is the mean return. UserError is raised if a return is not finite.
    """
    groups: dict[str, list[dict]] = defaultdict(list)
    for row in rows:
        groups[row["task_type"]].append(row)
    return {
        name: {
            "trajectories": len(group),
            "at_turn_cap": _mean([r["success"] and r["n_turns"] <= turn_cap for r in group]),
            "at_expert_cap": _mean([r["success"] for r in group]),
            "score": _mean([finite(r["score"], f"task {r['task_id']}: score") for r in group]),
            "mean_turns": _mean([r["n_turns"] for r in group]),
        }
        for name, group in [("all", rows), *sorted(groups.items())]
    }


def progress_and_reward(rows: Sequence[Mapping]) -> dict | None:
    """Correlation between episodes' progress and return.

    Args:
        rows: one mapping per episode, with `score` (the return) and `progress` (summed over turns).
            Rows without progress are ignored.

    Returns:
        None if no row has progress. Otherwise, the number of rows with progress, their mean
        progress and mean return, and Pearson's correlation (None if one of the two is constant).
    """
    import numpy as np
    from scipy.stats import pearsonr

    played = [row for row in rows if row.get("progress") is not None]
    if not played:
        return None
    progress = np.array([finite(row["progress"], "progress of an episode") for row in played])
    reward = np.array([row["score"] for row in played])
    # Use a tolerance, because sums that should be equal may differ by rounding errors.
    varied = np.ptp(progress) > 1e-9 and np.ptp(reward) > 1e-9
    return {
        "trajectories": len(played),
        "mean_progress": float(progress.mean()),
        "mean_reward": float(reward.mean()),
        "correlation": float(pearsonr(progress, reward).statistic) if varied else None,
    }


def _mean(values: list) -> float:
    return sum(values) / len(values)


def _show_success(title: str, table: dict[str, dict], env: EnvSettings) -> None:
    print(f"{title}: success within {env.turn_cap} and {env.expert.turn_cap} turns; mean score")
    for name, row in table.items():
        print(
            f"  {name:<32}{row['at_turn_cap']:.3f}  {row['at_expert_cap']:.3f}"
            f"  {row['score']:.3f}"
            f"  ({row['trajectories']} trajectories, {row['mean_turns']:.1f} turns)"
        )
