"""Makes the games of a study: generates or collects them, checks them, and writes them."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tqdm import tqdm

from hgrpo.envs.alfworld import folder, generator
from hgrpo.envs.alfworld.gamefile import compile_game, content_hash
from hgrpo.envs.alfworld.native import NativeGame
from hgrpo.envs.alfworld.settings import AlfworldSettings
from hgrpo.envs.alfworld.vocabulary import PUT
from hgrpo.envs.base import Task
from hgrpo.errors import UserError


def make(
    config: AlfworldSettings, seed: int, out: Path, skipped: Counter
) -> Iterator[tuple[str, Task]]:
    """Check each game, write it below `out`, and yield its split and task, in panel order.

    Args:
        skipped: reason -> number of games left out; updated here.

    Raises:
        UserError: a game's commands are not in the language that the setting `grammar` names, or
            its walkthrough does not win.
    """
    sizes = config.panels.model_dump()
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
        kind = files.trajectory["task_type"]
        yield split, Task(files.folder, f"games/{name}", content_hash(files.game), kind)


def _check(game: dict, name: str, language: str) -> None:
    if f'"{PUT[language].format("{o}", "{r}")}"' not in game["grammar"]:
        raise UserError(f"{name}: env.grammar is {language!r}, but this game's commands differ")
    play = NativeGame(compile_game(game, name))
    play.reset()
    walkthrough = game.get("walkthrough") or []
    for command in walkthrough:
        play.step(command)
    if walkthrough and not play.won:
        raise UserError(f"{name}: the stored walkthrough does not win this game")
