"""Finds games by name. The name of a game is the name of its folder in this package."""

import pkgutil

import hgrpo.games
from hgrpo.errors import UserError, did_you_mean, import_plug_in
from hgrpo.games.environment import Environment


def known() -> list[str]:
    """Names of all games."""
    return sorted(m.name for m in pkgutil.iter_modules(hgrpo.games.__path__) if m.ispkg)


def load(name: str) -> Environment:
    """Return the environment defined in the folder `hgrpo/games/<name>`.

    Raises:
        UserError: the folder does not exist, cannot be imported, or defines no environment.
    """
    if name not in known():
        raise UserError(f"unknown environment {name!r}{did_you_mean(str(name), known())}")
    try:
        environment = vars(import_plug_in(f"hgrpo.games.{name}")).get("ENVIRONMENT")
    except ValueError as error:
        raise UserError(str(error)) from error
    if not isinstance(environment, Environment):
        raise UserError(
            f"hgrpo/games/{name}/__init__.py: ENVIRONMENT must be an instance of Environment"
        )
    return environment
