"""Generates the games of a study or reads them from a folder, and then checks and writes them."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.games import tracking
from hgrpo.games.alfworld import gamefile, generator
from hgrpo.games.alfworld.native import NativeGame
from hgrpo.games.alfworld.settings import AlfworldSettings, GamesSettings
from hgrpo.games.alfworld.vocabulary import PUT
from hgrpo.games.base import Task
from hgrpo.games.panels import SPLITS, leave_out, share_out, stratified
from hgrpo.games.user_path import user_path

# Keys of traj_data.json that the pipeline or the official loader uses. All others are dropped.
_KEYS = ("task_id", "task_type", "pddl_params", "scene", "turk_annotations")


def make(
    config: AlfworldSettings, seed: int, out: Path, skipped: Counter
) -> Iterator[tuple[str, Task]]:
    """Check each game, write it to `out`, and yield (split, task) in panel order.

    Args:
        skipped: maps a reason to the number of excluded games; updated in place.

    Raises:
        UserError: games cannot be read or generated, the commands of a game do not match the
            setting `grammar`, or the walkthrough of a generated game does not win.
    """
    sizes = config.panels.sizes
    root = out / "games"
    if config.games.generate is not None:
        source = generator.generate(config.games.generate, sizes, config.grammar, seed)
    else:
        source = _collect(config.games, sizes, seed, skipped)
    total = None if None in sizes.values() else sum(sizes.values())
    for split, files in tracking.bar(source, total=total, desc="assets", unit="game"):
        name = f"{split}/{files.folder}"
        _check(files.game, name, config, skipped)
        generator.write(root / split, files)
        kind = files.trajectory["task_type"]
        yield split, Task(files.folder, f"games/{name}", gamefile.content_hash(files.game), kind)


def _check(game: dict, name: str, config: AlfworldSettings, skipped: Counter) -> None:
    """Check a game's commands and walkthrough. If a user's walkthrough fails, delete it."""
    language = config.grammar
    if f'"{PUT[language].format("{o}", "{r}")}"' not in game["grammar"]:
        raise UserError(f"{name}: the game's commands do not match `env.grammar: {language}`")
    play = NativeGame(gamefile.compile_game(game, name))
    play.reset()
    try:
        walkthrough = gamefile.read_walkthrough(game, name)
        for command in walkthrough:
            play.step(command)
        if walkthrough and not play.won:
            raise UserError(f"{name}: the stored walkthrough does not win the game")
    except UserError as error:
        if config.games.generate is not None:
            raise
        # Keep the game without its walkthrough, which the official loader does not read.
        leave_out(skipped, "walkthrough", error, Path())
        del game["walkthrough"]


def _collect(
    games: GamesSettings, sizes: dict[str, int | None], seed: int, skipped: Counter
) -> Iterator[tuple[str, generator.GameFiles]]:
    """Yield (panel, game) in panel order: task types alternate, and games of a type are shuffled.

    Games are excluded if the official loader excludes them, if they are already won at reset, or if
    they duplicate an earlier game. `skipped` counts excluded games by reason.

    Raises:
        UserError: a folder is missing, or its number of games differs from `games.expected`.
    """
    root = user_path(games.folder or "", "games.folder")
    hashes: set[str] = set()
    for split in SPLITS:
        place = root / getattr(games.splits, split)
        if not place.is_dir():
            raise UserError(f"games.splits.{split}: folder not found: {place}")
        before = skipped.copy()
        tasks = gamefile.list_games(place, skipped)
        if games.expected and len(tasks) != (expected := getattr(games.expected, split)):
            raise UserError(
                f"games.expected.{split}: expected {expected} games, but {place} has "
                f"{len(tasks)}; excluded: {dict(skipped - before)}"
            )
        fresh = {task.content_hash: task for task in tasks if task.content_hash not in hashes}
        skipped["same content as another game"] += len(tasks) - len(fresh)
        hashes.update(fresh)
        stream = "alfworld-panel", seed, split
        ordered = stratified(fresh.values(), lambda task: task.task_type, *stream)
        for panel, task in share_out(split, ordered, sizes):
            trajectory = json.loads((place / task.path / gamefile.TASK_FILE).read_bytes())
            known = {key: trajectory[key] for key in _KEYS if key in trajectory}
            game = gamefile.read_game(place / task.path)
            yield panel, generator.GameFiles(task.path, game, known)
