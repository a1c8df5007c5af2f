"""What the agent reads and writes: views, the opening, replies, and tokens."""

import pytest
from sokoban_levels import CORNER, LINE, PAIR, at_level, level_task, panels, world

from hgrpo.agent.tokenizer import train_tokenizer
from hgrpo.errors import UserError
from hgrpo.games.kinds import load
from hgrpo.games.sokoban.env import SokobanEnv
from hgrpo.games.sokoban.replies import read_reply

UP, DOWN, LEFT, RIGHT = range(4)
GRID = "#######\n#P_√__#\n#_X_O_#\n#_____#\n#######"
WALLS = (
    "Walls: (0, 0) (0, 1) (0, 2) (0, 3) (0, 4) (0, 5) (0, 6) (1, 0) (1, 6) (2, 0) (2, 6) (3, 0) "
    "(3, 6) (4, 0) (4, 1) (4, 2) (4, 3) (4, 4) (4, 5) (4, 6)"
)
COORD = f"{WALLS}\nTargets: (2, 4)\nBoxes: (2, 2)\nBoxes on targets: (1, 3)\nYou: (1, 1)"
LEGEND = (
    "The symbols are: # wall, _ floor, O target, X box, √ box on target, P you, S you on a target."
)
CELLS = "Cells are (row, column) of 5 rows and 7 columns, counted from 0 at the top left."


@pytest.mark.parametrize(
    ("view", "board", "says", "says_not"),
    [
        ("grid", GRID, [LEGEND], [CELLS]),
        ("coord", COORD, [CELLS], [LEGEND]),
        ("grid_coord", f"{COORD}\n{GRID}", [LEGEND, CELLS], []),
    ],
)
def test_each_view_shows_the_board_with_its_walls_and_legend(tmp_path, view, board, says, says_not):
    env = SokobanEnv(tmp_path, world(view=view))
    text = env.reset(level_task(tmp_path, PAIR)).text
    rules, _, drawn = text.partition("Turn 1 of 5, actions left: 10\n")
    assert drawn == board
    assert all(line in rules for line in says)
    assert not any(line in rules for line in says_not)
    after = env.step("Down").observation.text
    assert after.startswith("Turn 2 of 5, actions left: 9\n")


def test_a_player_on_a_target_is_shown(tmp_path):
    env = at_level(tmp_path, CORNER, view="grid_coord")
    text = env.step("Right").observation.text
    assert "Targets: none\n" in text
    assert "You on a target: (1, 3)" in text
    assert "#__S#" in text


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({}, "There are 5 turns and 10 actions in all."),
        ({"turn_cap": 7, "actions": 12}, "There are 7 turns and 12 actions in all."),
        ({}, "Reply with up to 2 actions, Up, Down, Left or Right, separated by ||, such as "),
        (
            {"actions_per_turn": 1, "actions": 5, "levels": {"generate": {"lengths": [1, 5]}}},
            "Reply with one action: Up, Down, Left or Right.",
        ),
    ],
)
def test_the_opening_states_the_real_limits(tmp_path, settings, line):
    env = SokobanEnv(tmp_path, world(**settings))
    opening = env.reset(level_task(tmp_path, LINE))
    assert line in opening.text
    assert opening.goal in opening.text


@pytest.mark.parametrize("symbols", ["#_OX√P", "#_OX√PP", "#_OX√P\n"])
def test_symbols_that_cannot_be_told_apart_are_refused(symbols):
    with pytest.raises(UserError, match="symbols: .*seven distinct printable characters"):
        world(symbols=symbols)


@pytest.mark.parametrize(
    ("reply", "actions", "understood"),
    [
        ("Up", (UP,), True),
        ("Up || Left", (UP, LEFT), True),
        ("  down\n||\nRIGHT ", (DOWN, RIGHT), True),
        ("Up || Left || Down", (UP, LEFT), True),
        ("Up ||", (UP,), True),
        ("|| Up || || Left", (UP, LEFT), True),
        ("<answer>Up || Left</answer>", (UP, LEFT), True),
        ("The box is left of me.\n<answer> Left </answer>", (LEFT,), True),
        ("<think>Up, or Down?</think><answer>Down</answer>", (DOWN,), True),
        ("First <answer>Up</answer>, no: <answer>Down</answer>", (DOWN,), True),
        ("<answer>think <answer>Up</answer>", (UP,), True),
        ("", (), False),
        ("||", (), False),
        ("Up Left", (), False),
        ("Up || jump", (UP,), False),
        ("jump || Up", (UP,), False),
        ("jump || hop || Up", (), False),
        ("<answer>Up", (), False),
        ("Up</answer>", (), False),
        ("Up <answer>jump</answer>", (), False),
        ("<Answer>Up</Answer>", (), False),
    ],
)
def test_replies(reply, actions, understood):
    assert read_reply(reply, 2) == (actions, understood)


def test_a_reply_that_is_not_understood_leaves_the_board_and_says_so(tmp_path):
    env = at_level(tmp_path, CORNER)
    before = env.board
    step = env.step("I think I go up")
    assert (step.info["admissible"], step.progress, env.board) == (False, 0, before)
    assert step.observation.text.startswith("Not understood: an action is Up, Down, Left or Right.")
    assert "Turn 2 of 5, actions left: 10" in step.observation.text


@pytest.mark.parametrize("view", ["grid", "coord"])
def test_the_tiny_tokenizer_makes_a_cell_a_token(tmp_path, view):
    settings = world(view=view)
    env = SokobanEnv(tmp_path, settings)
    texts = []
    for task in panels(settings, tmp_path)["train"]:
        texts += [env.reset(task).text, "Up || Down", "Left", "Right"]
        texts += [env.step(reply).observation.text for reply in ("Up || Down", "x", "Left")]
    made = train_tokenizer(texts, 2048, load("sokoban").cut)
    task = panels(settings, tmp_path / "again")["train"][4]
    opening = env.reset(task).text
    for text in (opening, env.step("Right").observation.text, "Up || Left"):
        assert made.decode(made.encode(text).ids) == text
    tokens = made.encode(opening).tokens
    state = tokens[tokens.index("Turn\u01201\u0120of\u01205") + 2 :]
    # Five lists with their names: the walls, a target, a box, none on a target, and the player.
    lists = 5 + env.level.free.count(0) + 4
    assert len(state) == {"grid": 36, "coord": lists}[view]
    assert len(made.encode("Up || Left").tokens) == 3
    assert len(tokens) - len(state) < 12
