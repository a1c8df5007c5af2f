"""Draws the games of the panels."""

from collections.abc import Iterator

import numpy as np

from hgrpo.errors import UserError
from hgrpo.games import streams
from hgrpo.games.base import Task
from hgrpo.games.chores.game import CLIENTS, Game, Habits, habits_of
from hgrpo.games.chores.settings import ChoresSettings

_DEFAULT = {"train": 4000, "validation": 200, "test": 500}
_TRIES = 1000


def make(settings: ChoresSettings, seed: int) -> Iterator[tuple[str, Task]]:
    """Draw distinct games, and yield (split, task) in panel order.

    Raises:
        UserError: the world has too few distinct games for the panels.
    """
    habits, seen = habits_of(settings), set()
    for split, size in settings.panels.sizes.items():
        for number in range(size or _DEFAULT[split]):
            rng = streams.generator("chores-tasks", seed, split, number)
            game = next(_new(settings, habits, rng, seen), None)
            if game is None:
                raise UserError(
                    f"panels.{split}: found {number} games, but {_TRIES} further draws gave no new "
                    "game; use more chores or kinds of objects, or smaller panels"
                )
            seen.add(game.path)
            yield split, Task(f"{split}-{number}", game.path, game.content_hash(settings), "chores")


def _new(
    settings: ChoresSettings, habits: Habits, rng: np.random.Generator, seen: set[str]
) -> Iterator[Game]:
    for _ in range(_TRIES):
        game = draw(settings, habits, rng)
        if game.path not in seen:
            yield game


def draw(settings: ChoresSettings, habits: Habits, rng: np.random.Generator) -> Game:
    """Draw a game in which the number of chores that affect the score is `settings.counting`."""
    counts = rng.permutation(np.arange(settings.chores) < settings.counting)
    kinds = np.array(list(habits.place))
    things = rng.choice(kinds, settings.chores)
    if settings.counted == "kinds":
        that_count = np.isin(kinds, habits.counting)
        for value in (True, False):
            if (counts == value).any():
                things[counts == value] = rng.choice(
                    kinds[that_count == value], int((counts == value).sum())
                )
    client = CLIENTS[rng.integers(len(CLIENTS))]
    return Game(client, tuple(things.tolist()), tuple(counts.tolist()))
