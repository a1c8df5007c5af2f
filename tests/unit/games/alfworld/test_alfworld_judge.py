"""The offline rubric for ALFWorld, line by line."""

import hashlib
import itertools
import json

import pytest
from judge_cases import GOAL, ROOM, WON

from hgrpo.games.alfworld.judge import JUDGE_TEXT

NOTHING = "you see nothing."


def scores(steps, goal=GOAL, completed=False, opening=ROOM):
    """Scores of (action, effect) steps whose last effect is not shown."""
    observations = [opening, *(effect for _, effect in steps)]
    turns = [(observations[i], action) for i, (action, _) in enumerate(steps)]
    return JUDGE_TEXT.score(goal, turns, completed)


def arrive(place, sight=NOTHING):
    return (f"go to {place}", f"You arrive at {place}. On the {place}, {sight}")


def take(thing, place):
    return (f"take {thing} from {place}", f"You pick up the {thing} from the {place}.")


def put(thing, place):
    return (f"move {thing} to {place}", f"You move the {thing} to the {place}.")


def heat(thing):
    return (f"heat {thing} with microwave 1", f"You heat the {thing} using the microwave 1.")


END = ("look", "")
MUG = "you see a mug 1, and a pen 1."


def test_a_won_game_scores_as_its_table_says():
    steps = [(action, effect) for action, effect, _ in WON]
    assert scores(steps, completed=True) == [score for *_, score in WON]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([("go to moon 1", "Nothing happens."), END], [0, 2]),
        ([("", ROOM), END], [0, 2]),
        ([("look", ROOM), ("look", ROOM), END], [2, 1, 2]),
        ([arrive("desk 1"), arrive("shelf 2"), arrive("desk 1"), END], [4, 4, 2, 2]),
        ([arrive("desk 1", MUG), arrive("shelf 2"), arrive("desk 1", MUG), END], [7, 4, 2, 2]),
        ([("open drawer 1", f"You open it. In it, {MUG}"), END], [8, 2]),
        ([("open drawer 1", f"You open it. In it, {NOTHING}"), END], [5, 2]),
        (
            [("open a 1", "Open."), ("close a 1", "Closed."), ("open a 1", "Open."), END],
            [5, 2, 2, 2],
        ),
        ([take("mug 1", "desk 1"), END], [9, 2]),
        ([take("pen 1", "desk 1"), END], [2, 2]),
        (
            [take("mug 1", "desk 1"), put("mug 1", "desk 1"), take("mug 1", "desk 1"), END],
            [9, 2, 3, 2],
        ),
        # Cold mugs do not belong on the shelf yet; hot ones do.
        ([take("mug 1", "desk 1"), arrive("shelf 1"), put("mug 1", "shelf 1"), END], [9, 4, 2, 2]),
        (
            [
                take("mug 1", "desk 1"),
                arrive("microwave 1"),
                heat("mug 1"),
                heat("mug 1"),
                arrive("shelf 1"),
                put("mug 1", "shelf 1"),
                take("mug 1", "shelf 1"),
                END,
            ],
            [9, 7, 10, 2, 7, 10, 1, 2],
        ),
        ([take("pen 1", "desk 1"), arrive("microwave 1"), heat("pen 1"), END], [2, 4, 2, 2]),
        ([("cool mug 1 with fridge 1", "You cool the mug 1."), END], [2, 2]),
        ([take("mug 1", "desk 1")], [2]),
    ],
)
def test_each_rule(steps, expected):
    assert scores(steps) == expected


def test_the_last_turn_of_a_completed_task_decides_it():
    assert scores([take("mug 1", "desk 1"), END], completed=True) == [9, 10]


def test_without_a_change_asked_an_object_is_ready_when_held():
    goal = "put some mug on desk."
    steps = [take("mug 1", "shelf 1"), arrive("desk 1"), put("mug 1", "desk 1"), END]
    assert scores(steps, goal) == [9, 7, 10, 2]
    older = [("put mug 1 in/on desk 1", "You put the mug 1 in/on the desk 1."), END]
    assert scores(steps[:2] + older, goal) == [9, 7, 10, 2]


def test_looking_under_a_lamp():
    goal = "look at mug under the desklamp"
    lamp = arrive("desk 1", "you see a desklamp 1.")
    use = ("use desklamp 1", "You turn on the desklamp 1.")
    steps = [lamp, use, take("mug 1", "bed 1"), lamp, use, END]
    assert scores(steps, goal) == [7, 4, 9, 7, 10, 2]


def test_of_two_objects_both_count():
    goal = "find two mug and put them in shelf"
    first = [take("mug 1", "desk 1"), arrive("shelf 1"), put("mug 1", "shelf 1")]
    second = [take("mug 2", "desk 1"), arrive("shelf 1"), put("mug 2", "shelf 1")]
    assert scores([*first, *second, END], goal) == [9, 7, 10, 9, 7, 10, 2]


def test_a_goal_that_is_not_given_is_read_from_the_opening():
    steps = [(action, effect) for action, effect, _ in WON]
    assert scores(steps, goal="") == scores(steps)


def test_other_scores_are_another_version():
    """All games of three of these steps, lost and won, score as the version's note says."""
    steps = [
        ("fly", "Nothing happens."),
        arrive("desk 1", MUG),
        arrive("microwave 1"),
        arrive("shelf 1"),
        ("open drawer 1", f"You open it. In it, {MUG}"),
        take("mug 1", "desk 1"),
        take("mug 1", "shelf 1"),
        put("mug 1", "shelf 1"),
        heat("mug 1"),
        ("cool pen 1 with fridge 1", "You cool the pen 1."),
        ("use mug 1", "You use it."),
    ]
    table = [
        scores(list(played), completed=completed)
        for played in itertools.product(steps, repeat=3)
        for completed in (False, True)
    ]
    digest = hashlib.sha256(json.dumps(table).encode()).hexdigest()[:16]
    known = {"4e1d479b306dc7a1": "7c17b0710c5c5627"}
    assert known.get(JUDGE_TEXT.rubric_version) == digest, (
        "cached scores would be wrong: change rubric_version, and note its digest here"
    )
