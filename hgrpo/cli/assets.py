"""Make or collect the games of a study and write its panels.

Every game is played once before it is let in: it must not be won at reset, and its stored
walkthrough, where it has one, must win.

Example:
  python -m hgrpo.cli.assets --config configs/envs/alfworld-laptop.yaml --seed 0 \\
      --out results/bakeoff/assets
"""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tqdm import tqdm

from hgrpo.atomic import atomic_folder
from hgrpo.cli.entry import arguments, read_config, run
from hgrpo.config.env import EnvConfig
from hgrpo.config.read import validate
from hgrpo.envs.alfworld import folder, generator
from hgrpo.envs.alfworld.gamefile import compile_game, content_hash
from hgrpo.envs.alfworld.native import NativeGame
from hgrpo.envs.base import Task
from hgrpo.envs.panels import SPLITS, check_sizes, write_panels
from hgrpo.errors import UserError
from hgrpo.provenance import provenance

_LANGUAGE = {"move": '"move {o} to {r}"', "put": '"put {o} in/on {r}"'}


def main() -> None:
    """Parse the arguments and write the assets folder."""
    parser = arguments(__doc__)
    parser.add_argument("--seed", type=int, default=0, help="seed of the games and panels")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    args = parser.parse_args()
    loaded = read_config(args.config)
    config = validate(EnvConfig, loaded.get("env", loaded), "--config")
    began = time.perf_counter()
    sizes = {split: getattr(config.panels, split) for split in SPLITS}
    skipped: Counter[str] = Counter()
    panels: dict[str, list[Task]] = {split: [] for split in SPLITS}
    with atomic_folder(args.out) as out:
        for split, task in _games(config, sizes, args.seed, skipped, out / "games"):
            panels[split].append(task)
        check_sizes(panels, loaded)
        write_panels(out / "panels.json", panels)
        manifest = {
            "env": config.model_dump(mode="json", exclude={"expert"}),
            "seed": args.seed,
            "source": "generated" if config.games.generate else "folder",
            "panels": {
                split: {"games": len(tasks), **_types(tasks), "hash": _digest(tasks)}
                for split, tasks in panels.items()
            },
            "skipped": {reason: count for reason, count in sorted(skipped.items()) if count},
            "elapsed_s": time.perf_counter() - began,
        } | provenance("assets")
        (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    for split, row in manifest["panels"].items():
        counts = ", ".join(f"{kind} {count}" for kind, count in row["types"].items())
        print(f"{split}: {row['games']} games ({counts})")
    for reason, count in manifest["skipped"].items():
        print(f"left out: {count} ({reason})")


def _games(
    config: EnvConfig, sizes: dict[str, int | None], seed: int, skipped: Counter, root: Path
) -> Iterator[tuple[str, Task]]:
    """Check, write and yield games, split by split."""
    if config.games.generate is not None:
        source = generator.generate(config.games.generate, sizes, config.grammar, seed)
    else:
        source = folder.collect(config.games, sizes, seed, skipped)
    total = None if None in sizes.values() else sum(sizes.values())
    for split, files in tqdm(source, total=total, desc="assets", unit="game", mininterval=1):
        name = f"{split}/{files.folder}"
        _check(files.game, name, config.grammar)
        generator.write(root / split, files)
        yield (
            split,
            Task(
                files.folder,
                f"games/{name}",
                content_hash(files.game),
                files.trajectory["task_type"],
            ),
        )


def _check(game: dict, name: str, language: str) -> None:
    """Raise UserError unless the game speaks `language` and its walkthrough, if any, wins it."""
    if _LANGUAGE[language] not in game["grammar"]:
        raise UserError(f"{name}: env.grammar is {language!r}, but this game's commands differ")
    play = NativeGame(compile_game(game, name))
    play.reset()
    walkthrough = game.get("walkthrough") or []
    for command in walkthrough:
        play.step(command)
    if walkthrough and not play.won:
        raise UserError(f"{name}: the stored walkthrough does not win this game")


def _types(tasks: list[Task]) -> dict[str, dict[str, int]]:
    return {"types": dict(sorted(Counter(task.task_type for task in tasks).items()))}


def _digest(tasks: list[Task]) -> str:
    return hashlib.sha256("".join(task.content_hash for task in tasks).encode()).hexdigest()


if __name__ == "__main__":
    run(main)
