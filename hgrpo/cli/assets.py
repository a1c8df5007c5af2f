"""Make or collect the tasks of a study's environment and write its panels.

Example:
  python -m hgrpo.cli.assets --config results/bakeoff/config.yaml --seed 0 \\
      --out results/bakeoff/assets
"""

import hashlib
import json
import time
from collections import Counter
from pathlib import Path

from hgrpo.atomic import atomic_folder
from hgrpo.cli.entry import arguments, read_config, run
from hgrpo.envs.base import Task
from hgrpo.envs.kinds import environment_settings, load
from hgrpo.envs.panels import SPLITS, check_sizes, write_panels
from hgrpo.provenance import provenance


def main() -> None:
    """Parse the arguments and write the assets folder."""
    parser = arguments(__doc__)
    parser.add_argument("--seed", type=int, default=0, help="seed of the games and panels")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    args = parser.parse_args()
    loaded = read_config(args.config)
    config = environment_settings(loaded.get("env", loaded), "--config")
    environment = load(config.name)
    began = time.perf_counter()
    skipped: Counter[str] = Counter()
    panels: dict[str, list[Task]] = {split: [] for split in SPLITS}
    data_files = environment.task_data_files(config)
    with atomic_folder(args.out) as out:
        for split, task in environment.make_tasks(config, args.seed, out, skipped):
            panels[split].append(task)
        check_sizes(panels, loaded)
        write_panels(out / "panels.json", panels)
        manifest = {
            "env": config.model_dump(mode="json", exclude={"expert"}),
            "seed": args.seed,
            "source": config.source,
            "data_files": data_files,
            "panels": {
                split: {"tasks": len(tasks), **_types(tasks), "hash": _digest(tasks)}
                for split, tasks in panels.items()
            },
            "skipped": {reason: count for reason, count in sorted(skipped.items()) if count},
            "elapsed_s": time.perf_counter() - began,
        } | provenance("assets")
        (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    for split, row in manifest["panels"].items():
        counts = ", ".join(f"{kind} {count}" for kind, count in row["types"].items())
        print(f"{split}: {row['tasks']} tasks ({counts})")
    for reason, count in manifest["skipped"].items():
        print(f"left out or noted: {count} ({reason})")


def _types(tasks: list[Task]) -> dict[str, dict[str, int]]:
    return {"types": dict(sorted(Counter(task.task_type for task in tasks).items()))}


def _digest(tasks: list[Task]) -> str:
    return hashlib.sha256("".join(task.content_hash for task in tasks).encode()).hexdigest()


if __name__ == "__main__":
    run(main)
