"""Collect trajectories of the scripted expert, or of the walkthroughs, on the training panel.

Example:
  python -m hgrpo.cli.expert --config configs/envs/alfworld-laptop.yaml --seed 0 \\
      --assets results/bakeoff/assets --out results/bakeoff/expert
"""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from hgrpo import streams
from hgrpo.atomic import atomic_folder
from hgrpo.cli.entry import arguments, read_config, run
from hgrpo.config.env import EnvConfig
from hgrpo.config.read import validate
from hgrpo.envs.alfworld.env import AlfworldEnv
from hgrpo.envs.alfworld.expert import Favourites, Searcher, informed
from hgrpo.envs.alfworld.goals import read
from hgrpo.envs.alfworld.house import Household
from hgrpo.envs.base import Task
from hgrpo.envs.panels import read_panels
from hgrpo.errors import UserError
from hgrpo.provenance import provenance

_CEILING_GAMES = 1000
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
    config = validate(EnvConfig, loaded.get("env", loaded), "--config")
    began = time.perf_counter()
    panel = read_panels(args.assets / "panels.json")["train"]
    env = AlfworldEnv(args.assets, config.engine)
    skipped: Counter[str] = Counter()
    with tqdm(
        total=config.expert.trajectories, desc="expert", unit="trajectory", mininterval=1
    ) as bar:
        rows = []
        for row in collect(env, args.assets, panel, config, args.seed, skipped):
            rows.append(row)
            bar.update()
    if not rows:
        raise UserError(f"{args.assets}: no trajectory could be made: {dict(skipped)}")
    summary = {
        "trajectories": len(rows),
        "sources": dict(sorted(Counter(row["source"] for row in rows).items())),
        "turn_cap": config.turn_cap,
        "expert_turn_cap": config.expert.turn_cap,
        "success": success(rows, config.turn_cap),
        "informed": _ceiling(env, panel[:_CEILING_GAMES], config, args.seed),
        "skipped": dict(sorted(skipped.items())),
        "elapsed_s": time.perf_counter() - began,
    } | provenance("expert")
    with atomic_folder(args.out) as out:
        table = pa.Table.from_pylist(rows, schema=_SCHEMA)
        pq.write_table(table, out / "trajectories.parquet", compression="zstd")
        (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    _show("expert and walkthroughs", summary["success"], config)
    if summary["informed"]:
        _show("informed searcher (the ceiling)", summary["informed"], config)
    for reason, count in summary["skipped"].items():
        print(f"left out: {count} ({reason})")


def collect(
    env: AlfworldEnv,
    assets: Path,
    panel: list[Task],
    config: EnvConfig,
    seed: int,
    skipped: Counter,
) -> Iterator[dict]:
    """Yield rows of trajectories.parquet, game by game, shared out evenly over the panel.

    A goal in people's words is not understood by the expert: its walkthrough is taken instead,
    and a game without one is left out and counted in `skipped`.
    """
    expert = config.expert
    each, rest = divmod(expert.trajectories, len(panel))
    for index, task in enumerate(panel):
        understood = read(env.reset(task).goal) is not None
        for repetition in range(each + (index < rest)):
            name = (seed, task.task_id, repetition)
            walkthrough = None
            source = streams.generator("expert-source", *name)
            if not understood or source.random() < expert.walkthrough_share:
                walkthrough = _walkthrough(assets / task.path / "game.tw-pddl")
            if walkthrough is None and not understood:
                skipped["goal not understood, and no walkthrough"] += 1
                continue
            yield _play(env, task, config, name, walkthrough)


def _walkthrough(path: Path) -> list[str] | None:
    return json.loads(path.read_text()).get("walkthrough") or None


def _play(
    env: AlfworldEnv,
    task: Task,
    config: EnvConfig,
    name: tuple,
    walkthrough: list[str] | None = None,
    favourites: Favourites | None = None,
) -> dict:
    """One trajectory as a row; `name` is the key of its random stream."""
    opening = env.reset(task)
    knobs = config.expert if favourites is None else informed(config.expert)
    if walkthrough is None:
        rng = streams.generator("expert", *name)
        player = Searcher(opening.text, opening.goal, knobs, rng, config.grammar, favourites)
        command, cap = player.act(), knobs.turn_cap
    else:
        command, cap = walkthrough[0], len(walkthrough)
    observations, actions, won = [opening.text], [], False
    for turn in range(1, cap + 1):
        step = env.step(command)
        actions.append(command)
        observations.append(step.observation.text)
        won = step.success
        if step.done or turn == cap:
            break
        command = player.act(observations[-1]) if walkthrough is None else walkthrough[turn]
    return {
        "task_id": task.task_id,
        "content_hash": task.content_hash,
        "task_type": task.task_type,
        "source": "expert" if walkthrough is None else "walkthrough",
        "goal": opening.goal,
        "observations": observations,
        "actions": actions,
        "success": won,
        "n_turns": len(actions),
    }


def _ceiling(env: AlfworldEnv, tasks: list[Task], config: EnvConfig, seed: int) -> dict | None:
    """Success of the searcher that knows the habits; None where the habits are not ours."""
    if config.games.generate is None:
        return None
    usual = Household(config.games.generate).usual
    rows = [
        _play(env, task, config, ("informed", seed, task.task_id), None, usual) for task in tasks
    ]
    return success(rows, config.turn_cap)


def success(rows: list[dict], turn_cap: int) -> dict[str, dict]:
    """Success within `turn_cap` turns and in the end, by task type and over all."""
    groups: dict[str, list[dict]] = defaultdict(list)
    for row in rows:
        groups[row["task_type"]].append(row)
    return {
        name: {
            "trajectories": len(group),
            "at_turn_cap": _mean([r["success"] and r["n_turns"] <= turn_cap for r in group]),
            "at_expert_cap": _mean([r["success"] for r in group]),
            "mean_turns": _mean([r["n_turns"] for r in group]),
        }
        for name, group in [("all", rows), *sorted(groups.items())]
    }


def _mean(values: list) -> float:
    return sum(values) / len(values)


def _show(title: str, table: dict[str, dict], config: EnvConfig) -> None:
    print(f"{title}: success within {config.turn_cap} and {config.expert.turn_cap} turns")
    for name, row in table.items():
        print(
            f"  {name:<32}{row['at_turn_cap']:.3f}  {row['at_expert_cap']:.3f}"
            f"  ({row['trajectories']} trajectories, {row['mean_turns']:.1f} turns)"
        )


if __name__ == "__main__":
    run(main)
