"""Text games with long tasks. `make` makes one an environment of Gymnasium; see docs/games.md."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hgrpo.games.gym import Game


def make(game: str | dict[str, Any], **options: Any) -> "Game":
    """A game by its name or its settings; `options` are those of `hgrpo.games.gym.Game`."""
    # Imported here: the pipeline imports this package and has no use for Gymnasium.
    from hgrpo.games.gym import Game

    return Game(game, **options)
