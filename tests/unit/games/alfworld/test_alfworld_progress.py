"""Progress: hand-computed potentials, and what every walk must obey."""

import random

import pytest
from household import household
from hypothesis import given, settings
from hypothesis import strategies as st

from hgrpo.games.alfworld.gamefile import compile_game, native_potential
from hgrpo.games.alfworld.native import CompiledGame, NativeGame

FETCH = ["go to shelf 1", "take mug 1 from shelf 1"]


class Walk:
    """A play whose potential can be read."""

    def __init__(self, game: CompiledGame) -> None:
        self.potential = native_potential(game)
        self.play = NativeGame(game)
        self.play.reset()

    def level(self) -> float:
        return self.potential(self.play.game.view(self.play.facts), self.play.won)


def levels(goal: str, commands: list[str], extra: str = "") -> list[float]:
    walk = Walk(CompiledGame(household(goal, extra=extra)))
    potentials = [walk.level()]
    for command in commands:
        assert walk.play.step(command) != "Nothing happens.", command
        potentials.append(walk.level())
    return potentials


def test_place_is_held_then_in_place():
    back = ["move mug 1 to shelf 1", *FETCH[1:]]
    commands = [*FETCH, *back, "go to desk 1", "move mug 1 to desk 1", "take mug 1 from desk 1"]
    assert levels("place", commands) == [0, 0, 0.5, 0, 0.5, 0.5, 1, 0.5]


def test_heat_is_held_hot_and_in_place():
    third = pytest.approx(1 / 3)
    commands = [*FETCH, "go to microwave 1", "heat mug 1 with microwave 1", "go to fridge 1",
                "cool mug 1 with fridge 1", "go to microwave 1", "heat mug 1 with microwave 1",
                "go to desk 1", "move mug 1 to desk 1"]  # fmt: skip
    two = pytest.approx(2 / 3)
    expected = [0, 0, third, third, two, two, third, third, two, two, 1]
    assert levels("heat", commands) == expected


def test_an_unchanged_thing_in_place_earns_nothing_and_a_hot_one_elsewhere_keeps_its_point():
    commands = [*FETCH, "go to desk 1", "move mug 1 to desk 1"]
    assert levels("heat", commands)[-1] == 0
    commands = [*FETCH, "go to microwave 1", "heat mug 1 with microwave 1", "go to shelf 1",
                "move mug 1 to shelf 1", "take mug 2 from shelf 1"]  # fmt: skip
    # With a hot mug on the shelf, holding the cold one is no better.
    assert levels("heat", commands)[-2:] == pytest.approx([1 / 3, 1 / 3])


def test_two_counts_each_thing_and_the_one_that_is_held():
    commands = [*FETCH, "go to desk 1", "move mug 1 to desk 1", "go to shelf 1",
                "take mug 2 from shelf 1", "go to desk 1", "move mug 2 to desk 1"]  # fmt: skip
    assert levels("two", commands) == [0, 0, 0.25, 0.25, 0.5, 0.5, 0.75, 0.75, 1]


def test_two_in_different_receptacles_are_not_two():
    # A second desk: one mug on each desk is worth one mug.
    extra = "(receptacleType Sink_bar_1_bar_SinkBasin DeskType)"
    commands = [*FETCH, "go to desk 1", "move mug 1 to desk 1", "go to shelf 1",
                "take mug 2 from shelf 1", "go to sinkbasin 1",
                "move mug 2 to sinkbasin 1"]  # fmt: skip
    potentials = levels("two", commands, extra)
    assert potentials[-1] == 0.5
    assert max(potentials) == 0.75


def test_light_is_held_lit_and_together():
    lit_first = ["go to desk 1", "use desklamp 1", "go to drawer 1", "open drawer 1",
                 "take pen 1 from drawer 1", "go to desk 1"]  # fmt: skip
    assert levels("light", lit_first) == pytest.approx([0, 0, 1 / 3, 1 / 3, 1 / 3, 2 / 3, 1])
    held_first = ["go to drawer 1", "open drawer 1", "take pen 1 from drawer 1", "go to desk 1",
                  "go to shelf 1", "go to desk 1", "use desklamp 1"]  # fmt: skip
    expected = [0, 0, 0, 1 / 3, 2 / 3, 1 / 3, 2 / 3, 1]
    assert levels("light", held_first) == pytest.approx(expected)


def test_a_goal_of_another_shape_counts_when_won():
    assert levels("other", ["go to drawer 1", "open drawer 1", "close drawer 1"]) == [0, 0, 1, 0]


@given(st.integers(0, 2**32), st.sampled_from(["place", "heat", "two", "light", "other"]))
@settings(max_examples=30)
def test_walks(seed, goal):
    rng = random.Random(seed)
    game = compile_game(household(goal), "game")
    walk = Walk(game)
    start = level = walk.level()
    gains = []
    for _ in range(60):
        commands = [c for c in walk.play.admissible_commands() if c not in ("help", "look")]
        _, admissible = walk.play.act(rng.choice([*commands, "nonsense"]))
        before, level = level, walk.level()
        gains.append(level - before)
        assert 0 <= level <= 1 + 1e-12
        assert (level > 1 - 1e-9) == walk.play.won
        if not admissible:
            assert gains[-1] == 0
    assert sum(gains) == pytest.approx(walk.level() - start)
