"""Collects games from the user's folder, in the published layout `<split>/<task>/<trial>/`."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hgrpo import streams
from hgrpo.config.user_path import user_path
from hgrpo.envs.alfworld.gamefile import TASK_FILE, Listing, list_games, read_game
from hgrpo.envs.alfworld.generator import GameFiles
from hgrpo.envs.alfworld.settings import GamesSettings
from hgrpo.envs.base import Task
from hgrpo.envs.panels import SPLITS
from hgrpo.errors import UserError

# Keys that the pipeline and the official loader read; the files also hold camera poses.
_KEPT = ("task_id", "task_type", "pddl_params", "scene", "turk_annotations")


def collect(
    config: GamesSettings, sizes: dict[str, int | None], seed: int, skipped: Counter
) -> Iterator[tuple[str, GameFiles]]:
    """Yield (split, game) in panel order: task types in turn, games of a type shuffled by `seed`.

    A game is left out if the official loader leaves it out, if it is won at reset, or if its
    content equals an earlier game's. `skipped` counts these games by reason.

    Raises:
        UserError: a folder is missing or holds a bad file, it has fewer games than `sizes` wants,
            or it has more or fewer games than `games.expected` says.
    """
    root = user_path(config.folder or "", "games.folder")
    hashes: set[str] = set()
    for split in SPLITS:
        place = root / getattr(config.splits, split)
        if not place.is_dir():
            raise UserError(f"games.splits.{split}: no such folder: {place}")
        listing = list_games(place)
        skipped.update(listing.skipped.values())
        _check_number(config, split, place, listing)
        fresh = {task.content_hash: task for task in listing.tasks}
        fresh = {digest: task for digest, task in fresh.items() if digest not in hashes}
        skipped["same content as another game"] += len(listing.tasks) - len(fresh)
        hashes.update(fresh)
        panel = _in_turn(list(fresh.values()), (seed, split))
        wanted = sizes[split] or len(panel)
        if len(panel) < wanted:
            raise UserError(f"panels.{split}: {wanted} games are wanted, {place} has {len(panel)}")
        for task in panel[:wanted]:
            yield split, _files(place / task.path, task.path)


def _check_number(config: GamesSettings, split: str, place: Path, listing: Listing) -> None:
    found = len(listing.tasks)
    expected = config.expected.model_dump()[split] if config.expected else found
    if found != expected:
        skipped = sorted(Counter(listing.skipped.values()).items())
        reasons = ", ".join(f"{reason}: {count}" for reason, count in skipped)
        raise UserError(
            f"games.expected.{split}: {expected} games were expected, {place} has {found}"
            + (f" (left out: {reasons})" if reasons else "")
        )


def _in_turn(tasks: list[Task], name: tuple) -> list[Task]:
    """The tasks with their types in turn, so that every prefix is stratified."""
    queues: dict[str, list[Task]] = {}
    for task in tasks:
        queues.setdefault(task.task_type, []).append(task)
    ranked = []
    for kind in sorted(queues):
        order = streams.generator("alfworld-panel", *name, kind).permutation(len(queues[kind]))
        ranked += [(rank, kind, queues[kind][i]) for rank, i in enumerate(order)]
    return [task for _, _, task in sorted(ranked, key=lambda row: row[:2])]


def _files(place: Path, folder: str) -> GameFiles:
    trajectory = json.loads((place / TASK_FILE).read_text())
    kept = {key: trajectory[key] for key in _KEPT if key in trajectory}
    return GameFiles(folder, read_game(place), kept)
