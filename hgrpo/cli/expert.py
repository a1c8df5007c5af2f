"""Collect demonstrations on the training panel: a scripted expert's, or people's played again.

Example:
  python -m hgrpo.cli.expert --config results/bakeoff/config.yaml --seed 0 \\
      --assets results/bakeoff/assets --out results/bakeoff/expert
"""

import json
import time
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from hgrpo.atomic import atomic_folder
from hgrpo.cli.entry import arguments, read_config, run
from hgrpo.envs.environment import EnvSettings
from hgrpo.envs.kinds import environment_settings, load
from hgrpo.envs.panels import read_panels
from hgrpo.errors import UserError
from hgrpo.evaluation.potential_and_reward import progress_and_reward
from hgrpo.provenance import provenance

# A ceiling is for comparison with what was learnt: it is played where that is tested.
_CEILING_PANEL, _CEILING_TASKS = "test", 1000
_SCHEMA = pa.schema(
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


def main() -> None:
    """Parse the arguments, play, and write the expert folder."""
    parser = arguments(__doc__)
    parser.add_argument("--seed", type=int, default=0, help="seed of the expert's draws")
    parser.add_argument("--assets", type=Path, required=True, help="folder of games and panels")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    args = parser.parse_args()
    loaded = read_config(args.config)
    config = environment_settings(loaded.get("env", loaded), "--config")
    environment = load(config.name)
    began = time.perf_counter()
    data_files = environment.demonstration_data_files(config)
    panels = read_panels(args.assets / "panels.json")
    skipped: Counter[str] = Counter()
    with tqdm(
        total=config.expert.trajectories, desc="expert", unit="trajectory", mininterval=1
    ) as bar:
        rows = []
        for row in environment.demonstrate(
            config, args.assets, panels["train"], args.seed, skipped
        ):
            rows.append(row)
            bar.update()
    if not rows:
        raise UserError(f"{args.assets}: no trajectory could be made: {dict(skipped)}")
    tested = panels[_CEILING_PANEL][:_CEILING_TASKS]
    ceiling = environment.ceiling(config, args.assets, tested, args.seed)
    summary = {
        "trajectories": len(rows),
        "sources": dict(sorted(Counter(row["source"] for row in rows).items())),
        "data_files": data_files,
        "turn_cap": config.turn_cap,
        "expert_turn_cap": config.expert.turn_cap,
        "success": success(rows, config.turn_cap),
        "informed": success(ceiling, config.turn_cap) if ceiling else None,
        "informed_is": environment.informed,
        "informed_panel": _CEILING_PANEL,
        "progress": {
            "expert": progress_and_reward(rows),
            "informed": progress_and_reward(ceiling or []),
        },
        "skipped": dict(sorted(skipped.items())),
        "elapsed_s": time.perf_counter() - began,
    } | provenance("expert")
    with atomic_folder(args.out) as out:
        table = pa.Table.from_pylist(rows, schema=_SCHEMA)
        pq.write_table(table, out / "trajectories.parquet", compression="zstd")
        (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    _show("expert", summary["success"], config)
    if summary["informed"]:
        _show(f"the ceiling: {environment.informed}", summary["informed"], config)
    for name, found in summary["progress"].items():
        if found:
            correlation = found["correlation"]
            said = "undefined, all alike" if correlation is None else f"{correlation:.3f}"
            print(
                f"progress and reward of whole episodes, {name}: correlation {said} "
                f"({found['trajectories']} trajectories, means {found['mean_progress']:.3f} and "
                f"{found['mean_reward']:.3f})"
            )
    for reason, count in summary["skipped"].items():
        print(f"left out or noted: {count} ({reason})")


def success(rows: list[dict], turn_cap: int) -> dict[str, dict]:
    """Success within `turn_cap` turns and in the end, by task type and over all.

    `score` is the mean sum of the environment's rewards in the end.
    """
    groups: dict[str, list[dict]] = defaultdict(list)
    for row in rows:
        groups[row["task_type"]].append(row)
    return {
        name: {
            "trajectories": len(group),
            "at_turn_cap": _mean([r["success"] and r["n_turns"] <= turn_cap for r in group]),
            "at_expert_cap": _mean([r["success"] for r in group]),
            "score": _mean([r["score"] for r in group]),
            "mean_turns": _mean([r["n_turns"] for r in group]),
        }
        for name, group in [("all", rows), *sorted(groups.items())]
    }


def _mean(values: list) -> float:
    return sum(values) / len(values)


def _show(title: str, table: dict[str, dict], config: EnvSettings) -> None:
    print(f"{title}: success within {config.turn_cap} and {config.expert.turn_cap} turns, score")
    for name, row in table.items():
        print(
            f"  {name:<32}{row['at_turn_cap']:.3f}  {row['at_expert_cap']:.3f}"
            f"  {row['score']:.3f}"
            f"  ({row['trajectories']} trajectories, {row['mean_turns']:.1f} turns)"
        )


if __name__ == "__main__":
    run(main)
