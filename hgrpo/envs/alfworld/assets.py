"""The games of a study: generated or collected, checked, written in the published layout."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tqdm import tqdm

from hgrpo.config.user_path import user_path
from hgrpo.envs.alfworld import folder, generator
from hgrpo.envs.alfworld.download import fetch_games
from hgrpo.envs.alfworld.gamefile import compile_game, content_hash
from hgrpo.envs.alfworld.native import NativeGame
from hgrpo.envs.alfworld.settings import AlfworldSettings
from hgrpo.envs.base import Task
from hgrpo.envs.panels import SPLITS
from hgrpo.errors import UserError

_LANGUAGE = {"move": '"move {o} to {r}"', "put": '"put {o} in/on {r}"'}


def data_files(config: AlfworldSettings) -> list[dict]:
    """The archives that the games were unpacked from; every game's own hash is in the panels.

    Raises:
        UserError: games are to be fetched and cannot be.
    """
    if not config.games.download:
        return []
    return fetch_games(user_path(config.games.folder or "", "games.folder"))


def make(
    config: AlfworldSettings, seed: int, out: Path, skipped: Counter
) -> Iterator[tuple[str, Task]]:
    """Check games, write them below `out`, and yield their tasks with their splits, in order.

    Args:
        skipped: reason -> games that were left out; counted up here.

    Raises:
        UserError: a game speaks another language than the config says, or cannot be won.
    """
    sizes = {split: getattr(config.panels, split) for split in SPLITS}
    root = out / "games"
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
