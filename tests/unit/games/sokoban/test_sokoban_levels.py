"""Levels: how they are read, drawn and certified, and which are refused."""

import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest
from sokoban_levels import CORNER, LINE, PAIR, PANELS, panels, world
from stage_settings import run_stage

from hgrpo.errors import UserError
from hgrpo.games.kinds import load
from hgrpo.games.sokoban import distances as table
from hgrpo.games.sokoban.files import compiled, level_text, split_levels
from hgrpo.games.sokoban.generator import bands, task_type
from hgrpo.games.sokoban.level import Board, Level, canonical, read_level
from hgrpo.games.user_path import user_text
from hgrpo.stages.sections import environment_settings

ROOM = """
##########
#@       #
#  $ .   #
#  $ .   #
#  $ .   #
#  $ .   #
#        #
#        #
#        #
##########
"""


def all_boards(level: Level) -> Iterator[Board]:
    """Every board of a level, reachable or not."""
    cells = [cell for cell, open_ in enumerate(level.free) if open_]
    for boxes in combinations(cells, len(level.targets)):
        yield from ((cell, boxes) for cell in cells if cell not in boxes)


def shortest(level: Level, most: int) -> dict[Board, int]:
    """Boards that can be reached within `most` actions, and in how many; solved ones end it."""
    distances, frontier = {level.start: 0}, [level.start]
    for distance in range(1, most + 1):
        reached = []
        for board in frontier:
            if level.placed(board[1]) == len(board[1]):
                continue
            for delta in level.deltas:
                after = level.move(*board, delta)
                if after not in distances:
                    distances[after] = distance
                    reached.append(after)
        frontier = reached
    return distances


def solved_in(level: Level, most: int) -> int | None:
    """Length of the shortest solution, found forwards."""
    ends = [d for (_, boxes), d in shortest(level, most).items() if set(boxes) == level.targets]
    return min(ends, default=None)


@pytest.mark.parametrize(("text", "length"), [(LINE, 2), (CORNER, 6), (PAIR, 3)])
def test_the_shortest_solution_by_hand(text, length):
    level = read_level(text)
    assert compiled(level.text, 10)[1][level.start] == length == solved_in(level, 10)


@pytest.mark.parametrize(("boxes", "size", "most"), [(1, 6, 40), (2, 5, 12)])
def test_the_table_is_what_a_search_forwards_finds(tmp_path, boxes, size, most):
    made = {"rows": size, "columns": size, "boxes": boxes, "lengths": [1, 9]}
    settings = world(levels={"generate": made}, panels=dict.fromkeys(PANELS, 1))
    for task in panels(settings, tmp_path)["train"]:
        level = Level(level_text(tmp_path, task.path))
        distances = table.distances(level, most)
        for board in all_boards(level):
            start = Level.__new__(Level)
            object.__setattr__(start, "text", level.text)
            start.__dict__["start"] = board
            assert distances.get(board) == solved_in(start, most), board
            if boxes == 2 and len(distances) > 50 and board[1][0] % 3:
                break


def test_a_depth_bounds_the_table():
    level = read_level(CORNER)
    whole, near = table.distances(level, 99), table.distances(level, 3)
    assert near == {board: actions for board, actions in whole.items() if actions <= 3}
    assert len(near) < len(whole) < len(list(all_boards(level)))


@pytest.mark.parametrize(
    "made",
    [
        {"rows": 8, "columns": 8, "boxes": 2},
        {"rows": 5, "columns": 9, "boxes": 1, "lengths": [3, 5]},
    ],
)
def test_levels_are_certified_stratified_and_the_same_for_the_same_seed(tmp_path, made):
    settings = world(levels={"generate": made})
    first = panels(settings, tmp_path / "a")
    assert first == panels(settings, tmp_path / "b")
    assert first != panels(settings, tmp_path / "c", seed=1)
    assert {split: len(tasks) for split, tasks in first.items()} == PANELS
    low, high = settings.lengths
    for tasks in first.values():
        types = Counter(task.task_type for task in tasks)
        assert len(types) == 3
        assert max(types.values()) - min(types.values()) <= 1
        for task in tasks:
            level = read_level(level_text(tmp_path / "a", task.path))
            assert level.text == level_text(tmp_path / "a", task.path)
            assert (level.rows, level.columns) == (made["rows"], made["columns"])
            assert len(level.start[1]) == made["boxes"]
            length = solved_in(level, high)
            assert low <= length <= high
            assert task.task_type == task_type(length, settings.lengths)


def test_no_two_levels_are_twins(tmp_path):
    settings = world(panels={"train": 120, "validation": 30, "test": 60, "analysis": 30})
    made = panels(settings, tmp_path)
    forms = [
        canonical(read_level(level_text(tmp_path, task.path)))
        for tasks in made.values()
        for task in tasks
    ]
    assert len(set(forms)) == len(forms) == 240


def test_a_level_does_not_depend_on_the_sizes_of_the_panels(tmp_path):
    small = panels(world(panels=dict.fromkeys(PANELS, 3)), tmp_path / "a")
    large = panels(world(), tmp_path / "b")
    for split, tasks in small.items():
        assert [task.content_hash for task in tasks] == [
            task.content_hash for task in large[split][:3]
        ]


def test_levels_do_not_depend_on_how_a_process_hashes_text(tmp_path, project):
    code = (
        "import sys; from pathlib import Path; from sokoban_levels import panels, world;"
        "print([t.content_hash for p in panels(world(), Path(sys.argv[1])).values() for t in p])"
    )
    hashes = set()
    for salt in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": salt, "PYTHONPATH": f"{project}:{project / 'tests'}"}
        command = [sys.executable, "-c", code, str(tmp_path / salt)]
        hashes.add(subprocess.run(command, env=env, capture_output=True, check=True).stdout)
    assert len(hashes) == 1 and len(hashes.pop()) > 1000


def test_the_global_random_state_is_left_alone(tmp_path):
    before = np.random.get_state()[1].tolist(), random.getstate()
    panels(world(), tmp_path)
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before


def test_the_eight_forms_of_a_level_are_twins():
    rows = read_level(CORNER).text.split("\n")
    forms = set()
    for _ in range(4):
        rows = ["".join(column) for column in zip(*rows[::-1], strict=True)]
        forms |= {"\n".join(rows), "\n".join(row[::-1] for row in rows)}
    assert len(forms) == 8
    assert len({canonical(read_level(form)) for form in forms}) == 1
    assert canonical(read_level(LINE)) not in forms


@pytest.mark.parametrize(
    ("lengths", "types"),
    [
        ((2, 10), ["2-4 actions", "5-7 actions", "8-10 actions"]),
        ((1, 10), ["1-3 actions", "4-7 actions", "8-10 actions"]),
        ((1, 3), ["1-1 actions", "2-2 actions", "3-3 actions"]),
    ],
)
def test_three_bands_hold_every_length(lengths, types):
    assert [length for band in bands(lengths) for length in band] == [
        *range(lengths[0], lengths[1] + 1)
    ]
    assert [task_type(band[0], lengths) for band in bands(lengths)] == types


def test_a_world_with_too_few_levels_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("hgrpo.games.sokoban.generator._TRIES", 40)
    made = {"rows": 5, "columns": 5, "boxes": 1, "lengths": [1, 3]}
    settings = world(levels={"generate": made}, panels=PANELS | {"train": 2000})
    with pytest.raises(UserError, match=r"found \d+ levels, but no new level of . to"):
        panels(settings, tmp_path)


def write_folder(root, train, validation=PAIR, test=CORNER):
    for split, texts in (("train", train), ("valid", validation), ("test", test)):
        (root / split).mkdir(parents=True)
        texts = [texts] if isinstance(texts, str) else texts
        body = "\n".join(f"; {i}\n{text.strip(chr(10))}\n" for i, text in enumerate(texts))
        (root / split / "000.txt").write_text(body, encoding="utf-8")


def from_folder(root, **settings):
    sizes = {"train": None, "validation": None, "test": None}
    return world(levels={"folder": str(root)}, panels=sizes, **settings)


OPEN = "#####\n#@$. \n#####"


@pytest.mark.parametrize(
    ("train", "expected"),
    [
        ("#####\n#@@$.#\n######", "level 0: player: expected exactly one '@' or '+', not 2"),
        ("######\n#@$$.#\n######", "level 0: boxes: found 2 boxes, but 1 targets"),
        ("####\n#@*#\n####", "level 0: boxes: all boxes (1) are already on targets"),
        (OPEN, "level 0: walls: the room is open at row 1, column 4 (counted from 0)"),
        ("########\n#@$.#$.#\n########", "walls: '$' at row 1, column 5 is unreachable"),
        ("#####\n#@$.x\n#####", "level 0: symbols: 'x' is not valid in XSB"),
        ("#####\n#$ .#\n#@  #\n#####", "level 0: no solution of at most 10 actions"),
        (ROOM, "level 0: no solution of at most 10 actions is known; increase `actions`"),
        ([LINE, CORNER], "levels.splits.test: this level is the same as "),
    ],
)
def test_a_bad_level_is_one_line_that_names_file_and_key(tmp_path, monkeypatch, train, expected):
    if train is ROOM:
        monkeypatch.setattr(table, "MOST_BOARDS", 300)
    write_folder(tmp_path / "mine", train)
    with pytest.raises(UserError) as caught:
        run_stage("assets", *assets_arguments(tmp_path))
    message = str(caught.value)
    assert expected in message
    assert "\n" not in message
    assert re.search(r"(train|test)/000\.txt: level \d: \w+", message)
    if "solution" not in expected and "splits" not in expected:
        assert message.startswith("env.panels.train: too few tasks (1 required, 0 available); ")
        assert "; excluded: 1 bad level, the first: " in message
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def assets_arguments(root) -> list[str]:
    config = json.dumps({"env": from_folder(root / "mine").model_dump(mode="json")})
    return ["--config", config, "--seed", "0", "--out", str(root / "out")]


def test_levels_that_cannot_be_solved_are_left_out_if_the_settings_want_it(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "MOST_BOARDS", 300)
    write_folder(tmp_path / "mine", [LINE, "#####\n#$ .#\n#@  #\n#####", ROOM])
    settings = from_folder(tmp_path / "mine").model_dump()
    settings["levels"]["leave_out_unsolvable"] = True
    skipped = Counter()
    config = environment_settings(settings, "mine")
    made = load("sokoban").make_tasks(config, 0, tmp_path / "o", skipped)
    assert Counter(split for split, _ in made)["train"] == 1
    assert skipped == {"no solution of at most 10 actions is known": 2}


def test_a_bad_level_is_left_out_counted_and_named(tmp_path, capsys):
    write_folder(tmp_path / "mine", [LINE, OPEN, "####\n# #\n####"])
    (tmp_path / "mine/train/readme.txt").write_text("Levels by me.\n\n...\n", encoding="utf-8")
    run_stage("assets", *assets_arguments(tmp_path))
    manifest = json.loads((tmp_path / "out/manifest.json").read_bytes())
    assert manifest["panels"]["train"]["tasks"] == 1
    walls = "train/000.txt: level 1: walls: the room is open at row 1, column 4 (counted from 0)"
    readme = "train/readme.txt: the file contains no level"
    assert manifest["skipped"] == {
        f"bad level, the first: {walls}": 2,
        f"bad level file, the first: {readme}": 1,
    }
    printed = capsys.readouterr().out
    assert f"excluded: bad level: {walls}\n" in printed
    assert "excluded: bad level: train/000.txt: level 2: player: expected exactly one" in printed
    assert f"excluded or noted: 2 (bad level, the first: {walls})" in printed


PADDED = {
    "indented": "  ######\n  #@ $.#\n  ######",
    "blank rows and trailing blanks": "   \n-\n######  \n#@ $.#\t\n######\n--\n",
    "thick walls": "#########\n#########\n###@ $.##\n#########",
    "floor outside": "------------\n---######---\n---#@_$.#---\n---######---",
    "a room that the player cannot reach": "##########\n#@ $.#   #\n##########",
    "decoration": "*######\n #@ $.#\n*######*",
    "turned, with a margin": " ###\n #@#\n # #\n #$#\n #.#\n ###",
    "mirrored": "#######\n##.$ @#\n#######",
    "letters": "######\n#p b.#\n######",
}


@pytest.mark.parametrize("text", PADDED.values(), ids=PADDED)
def test_twins_are_found_wherever_the_level_stands(tmp_path, text):
    write_folder(tmp_path / "mine", LINE, test=[CORNER, text])
    (tmp_path / "mine/test/000.txt").write_text(f"; 0{CORNER}\n; 1\n{text}\n", encoding="utf-8")
    with pytest.raises(UserError, match="same as .*train.* up to symmetry"):
        panels(from_folder(tmp_path / "mine"), tmp_path / "out")


def test_blank_rows_and_columns_around_a_level_do_not_change_its_content():
    one = read_level(LINE).text
    for name in ("indented", "blank rows and trailing blanks", "floor outside"):
        ((_, text),) = split_levels(PADDED[name])
        assert read_level(text).text == one, name
    assert read_level(split_levels(PADDED["thick walls"])[0][1]).text != one


def test_levels_elsewhere_in_their_room_are_counted(tmp_path, monkeypatch):
    rooms = ["#######\n#@$.###\n#######", "#######\n##@$.##\n#######", "#######\n#@$ .##\n#######"]
    rows = [("train", 0), ("train", 1), ("validation", 2), ("test", 0), ("test", 1)]
    drawn = [(split, Level(rooms[number]), 2) for split, number in rows]
    monkeypatch.setattr("hgrpo.games.sokoban.assets.generate", lambda *_: iter(drawn))
    skipped = Counter()
    list(load("sokoban").make_tasks(world(), 0, tmp_path, skipped))
    assert skipped == {"level of another panel elsewhere in its room: kept": 2}


def levels_of(text: str) -> list[tuple[str, str]]:
    return [(title, read_level(level).text) for title, level in split_levels(text)]


BOARD = read_level(LINE).text
TWO = "#####\n#@$.#\n#####"
DIALECTS = {
    "Boxoban": (f"; 0\n{BOARD}\n\n; 1\n{TWO}\n", ["0", "1"]),
    "a title below": (f"{BOARD}\nTitle: First\nAuthor: me\n\n{TWO}\nTitle: B\n", ["First", "B"]),
    "numbers": (f"#1\n{BOARD}\n#2\n{TWO}\n", ["#1", "#2"]),
    "no titles": (f"{BOARD}\n\n\n{TWO}", ["0", "1"]),
    "a header": (f":: Sok ::\nCollection: x\n\nOne\n\n{BOARD}\n\nTwo\n{TWO}", ["One", "Two"]),
    "notes and solutions": (
        f"{BOARD}\nAuthor: Me # 1\nComment: a, b\nrR\n\n; two\n{TWO}\nSolution\nR\n",
        ["0", "two"],
    ),
    "carriage returns": (f"; a\n{BOARD}\n\n; b\n{TWO}".replace("\n", "\r\n"), ["a", "b"]),
    "floor as a hyphen": (f"; a\n{BOARD.replace(' ', '-')}\n\n; b\n{TWO}", ["a", "b"]),
    "run lengths": ("; a\n6#\n#@ $.#\n6#\n\n; b\n5#|#@$.#|5#|\n", ["a", "b"]),
    "a row of floor in a picture": (f"; a\n{BOARD}\n\n; b\n#\n-\n{TWO}", ["a", "b"]),
}


@pytest.mark.parametrize(("text", "titles"), DIALECTS.values(), ids=DIALECTS)
def test_dialects(tmp_path, text, titles):
    levels = levels_of(text)
    assert [title for title, _ in levels] == titles
    assert [canonical(Level(level), crop=True) for _, level in levels] == [
        canonical(Level(level), crop=True) for level in (BOARD, TWO)
    ]
    file = tmp_path / "levels.xsb"
    file.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert split_levels(user_text(file)) == split_levels(text.replace("\r", ""))


def test_what_is_no_level_is_not_half_read(tmp_path):
    assert split_levels("*****\n\n...\n\nLevel #1\n\n# \u00fc\n99999#\n") == []
    (_, text), (_, other) = split_levels("#####\n#@$.x\n#####\n\n#1\n###\n")
    assert text == "#####\n#@$.x\n#####" and other == "###"
    file = tmp_path / "levels.txt"
    file.write_bytes(LINE.encode("utf-16"))
    with pytest.raises(
        UserError, match=rf"^{file}:1: the text is not UTF-8; save the file in UTF-8$"
    ):
        user_text(file)


def test_folders_of_folders_and_links_are_read(tmp_path):
    write_folder(tmp_path / "mine", LINE)
    write_folder(tmp_path / "disk", TWO, test="######\n#@$ .#\n######")
    (tmp_path / "mine/train/more").symlink_to(tmp_path / "disk/train")
    (tmp_path / "mine/test/deep").mkdir()
    (tmp_path / "disk/test/000.txt").rename(tmp_path / "mine/test/deep/A.XSB")
    (tmp_path / "mine/train/._000.txt").write_bytes(b"\x00\x05\x16\x07")
    made = panels(from_folder(tmp_path / "mine"), tmp_path / "out")
    assert {task.task_id for task in made["train"]} == {"train-000.txt-0", "train-more-000.txt-0"}
    assert {task.task_id for task in made["test"]} == {"test-000.txt-0", "test-deep-A.XSB-0"}


def test_twins_of_one_panel_are_left_out_and_counted(tmp_path):
    turned = "\n".join("".join(c) for c in zip(*read_level(LINE).text.split("\n")[::-1]))  # noqa: B905
    write_folder(tmp_path / "mine", [LINE, turned])
    skipped = Counter()
    made = load("sokoban").make_tasks(from_folder(tmp_path / "mine"), 0, tmp_path / "o", skipped)
    assert Counter(split for split, _ in made)["train"] == 1
    assert skipped == {"same as another level of its panel": 1}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"actions": 11}, "actions: 11 actions do not fit into 5 turns of up to 2"),
        ({"actions": 8}, "levels.generate.lengths: solutions of up to 10 actions exceed `actions:"),
        ({"expert": {"turn_cap": 6}}, "expert.turn_cap: 6 exceeds the episode's `turn_cap: 5`"),
        ({"levels": {"generate": {"lengths": [2, 3]}}}, r"lengths: \[2, 3\]: the range must begin"),
        ({"panels": {"train": None}}, "panels: generated levels require a size"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        world(**settings)


@pytest.mark.parametrize("folder_exists", [True, False])
def test_a_folder_without_levels_is_named(tmp_path, folder_exists):
    if folder_exists:
        write_folder(tmp_path / "mine", LINE)
        (tmp_path / "mine/train/000.txt").unlink()
    with pytest.raises(UserError, match="levels.splits.train: level file not found: "):
        panels(from_folder(tmp_path / "mine"), tmp_path / "out")
