"""Fingerprints of situations: equal where the agent cannot tell two moments apart."""

import pytest
from household import household

from hgrpo.games.alfworld.env import changed
from hgrpo.games.alfworld.gamefile import compile_game
from hgrpo.games.alfworld.native import NativeGame
from hgrpo.games.base import fingerprint


@pytest.fixture
def game():
    return compile_game(household("heat"), "game")


def state(game, *commands: str) -> str:
    """The fingerprint after `commands`, from the reset; every one of them must be admissible."""
    play = NativeGame(game)
    play.reset()
    for command in commands:
        assert play.act(command)[1], command
    return fingerprint(changed(game.view(play.facts), game.view(game.start)))


def test_looking_and_opening_change_no_state(game):
    shelf = state(game, "go to shelf 1")
    assert state(game, "go to shelf 1", "examine shelf 1") == shelf
    assert state(game, "go to fridge 1", "open fridge 1", "go to shelf 1") == shelf


def test_place_and_things_held_make_the_state(game):
    there = state(game, "go to shelf 1")
    first = state(game, "go to shelf 1", "take mug 1 from shelf 1")
    second = state(game, "go to shelf 1", "take mug 2 from shelf 1")
    elsewhere = state(game, "go to shelf 1", "take mug 1 from shelf 1", "go to desk 1")
    assert len({fingerprint([]), there, first, second, elsewhere}) == 5


def test_a_thing_put_back_leaves_the_state_as_it_was(game):
    back = state(game, "go to shelf 1", "take mug 1 from shelf 1", "move mug 1 to shelf 1")
    assert back == state(game, "go to shelf 1")


def test_heating_stays_in_the_state_after_putting_down(game):
    carried = ("go to shelf 1", "take mug 1 from shelf 1", "go to microwave 1")
    cold = state(game, *carried, "go to desk 1", "move mug 1 to desk 1")
    hot = state(
        game,
        *carried,
        "heat mug 1 with microwave 1",
        "go to desk 1",
        "move mug 1 to desk 1",
    )
    assert cold != hot


def test_order_of_changes_does_not_count(game):
    one = ("go to shelf 1", "take mug 1 from shelf 1", "go to desk 1", "move mug 1 to desk 1")
    two = ("go to shelf 1", "take mug 2 from shelf 1", "go to desk 1", "move mug 2 to desk 1")
    assert state(game, *one, *two) == state(game, *two, *one)
