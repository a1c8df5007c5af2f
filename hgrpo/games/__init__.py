"""Long-horizon text games. `make` creates a Gymnasium environment; see docs/games.md."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hgrpo.games.gym import Game


def make(game: str | dict[str, Any], **options: Any) -> "Game":
    """Create a game from its name or settings; `options` are passed to `hgrpo.games.gym.Game`."""
    # Imported here because the pipeline imports this package but does not use Gymnasium.
    from hgrpo.games.gym import Game

    return Game(game, **options)
