"""Game files: what is refused and how it is named, hashes, listings, and the environment."""

import json
import pickle
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from household import household

from hgrpo.errors import UserError
from hgrpo.games.alfworld import ENVIRONMENT
from hgrpo.games.alfworld.env import AlfworldEnv
from hgrpo.games.alfworld.gamefile import content_hash, list_games, load_compiled
from hgrpo.games.alfworld.settings import TASK_TYPES
from hgrpo.games.base import Task
from hgrpo.stages.sections import environment_settings

WIN = ["go to shelf 1", "take mug 1 from shelf 1", "go to desk 1", "move mug 1 to desk 1"]


def write(folder, data=None, task="pick_and_place_simple", text=None):
    folder.mkdir(parents=True, exist_ok=True)
    data = household() if data is None else data
    (folder / "game.tw-pddl").write_text(
        json.dumps(data) if text is None else text, encoding="utf-8"
    )
    (folder / "traj_data.json").write_text(json.dumps({"task_type": task}), encoding="utf-8")
    return folder


MALFORMED = [
    ({"text": "[1]"}, "expected a JSON object, not list"),
    ({"data": household() | {"grammar": 3}}, "`grammar` must be a string"),
    ({"data": household() | {"walkthrough": ["look", None]}}, "must be a list of commands"),
    ({"data": household() | {"solvable": False}}, "solvable: false"),
    ({"data": household("(inside Desk_bar_1)")}, "unknown predicate 'inside'"),
    ({"data": household("(opened ?r)")}, r"variable '\?r' of 'opened' is not declared"),
    ({"data": household("(opened Drawer_bar_1 Desk_bar_1)")}, "'opened' takes 1 arguments, not 2"),
    ({"data": household("(receptacleType Desk_bar_1 BathType)")}, "undeclared object 'bathtype'"),
    ({"data": household("(opened Drawer_bar_1))))")}, "one expression in balanced parentheses"),
    ({"data": household("(and) (and)")}, r"malformed \(ValueError: "),
    ({"data": household("(not (opened Drawer_bar_1))")}, "the game is already won at reset"),
    ({"data": household(extra="(isHot Mug_bar_1 Mug_bar_2)")}, "'ishot' takes 1 arguments, not 2"),
    ({"data": household(extra="(isHot Mug_bar_9)")}, "undeclared object 'mug_bar_9'"),
    ({"data": household(extra="(atLocation Mug_bar_1 spot1)")}, "'atlocation' has an object"),
]


@pytest.mark.parametrize(("changes", "message"), MALFORMED)
def test_a_malformed_game_is_named(tmp_path, changes, message):
    with pytest.raises(UserError, match=rf"^{tmp_path}/game\.tw-pddl: .*{message}"):
        load_compiled(write(tmp_path, **changes))


def test_hash_is_of_the_content_alone():
    data = household()
    same = dict(data, walkthrough=["look"], solvable=True)
    same["pddl_problem"] = data["pddl_problem"].replace("(problem test)", "( PROBLEM  other )")
    same["pddl_problem"] = same["pddl_problem"].replace("\n", " ; a comment\n\n")
    assert content_hash(same) == content_hash(data)
    assert len(content_hash(data)) == 64
    changes = [
        ("pddl_problem", "(openable Drawer_bar_1)", ""),
        ("pddl_problem", "?r DeskType", "?r ShelfType"),
        ("grammar", "put a mug", "put some mug"),
        ("pddl_domain", "(pickupable ?o) (not", "(not"),
    ]
    hashes = {content_hash(data)}
    for key, old, new in changes:
        assert old in data[key]
        hashes.add(content_hash(data | {key: data[key].replace(old, new)}))
    assert len(hashes) == 1 + len(changes)


SOLVABLE = {
    "missing": ({}, "not marked as solvable"),
    "null": ({"solvable": None}, "marked unsolvable"),
    "0": ({"solvable": 0}, "marked unsolvable"),
    "false": ({"solvable": False}, "marked unsolvable"),
    "true": ({"solvable": True}, ""),
    "1": ({"solvable": 1}, ""),
    "text": ({"solvable": "false"}, ""),
}


def official_folder(root):
    """A game for every value of each key that the official loader reads; name -> reason."""
    reasons = {}
    bare = {key: value for key, value in household().items() if key != "solvable"}
    for name, (key, reason) in SOLVABLE.items():
        write(root / name / "trial", bare | key | {"grammar": bare["grammar"] + f"# {name}"})
        reasons[name] = reason
    for task in TASK_TYPES:
        write(root / task / "trial", household(extra=f"; {task}\n"), task=task)
        reasons[task] = ""
    write(root / "a_movable_recep/trial")
    write(root / "Bread-Sliced/trial")
    (write(root / "empty/trial") / "game.tw-pddl").unlink()
    (write(root / "untold/trial") / "traj_data.json").unlink()
    write(root / "walk/trial", household() | {"walkthrough": 5})
    return reasons | {
        "a_movable_recep": "movable receptacles are not supported",
        "Bread-Sliced": "slicing tasks are not supported",
        "empty": "no game file",
        "walk": "",
    }


def test_each_key_counts_as_it_does_for_the_official_loader(tmp_path):
    reasons = official_folder(tmp_path / "immovable-disk/Sliced/train")
    skipped = Counter()
    tasks = list_games(tmp_path / "immovable-disk/Sliced/train", skipped)
    played = {name for name, reason in reasons.items() if not reason}
    assert {task.path.split("/")[0] for task in tasks} == played
    assert skipped == Counter(reason for reason in reasons.values() if reason)


def test_the_official_loader_lists_the_same_games(tmp_path):
    module = pytest.importorskip("alfworld.agents.environment.alfred_tw_env")
    official_folder(tmp_path / "train")
    loader = object.__new__(module.AlfredTWEnv)
    loader.train_eval = "train"
    loader.config = {
        "dataset": {"data_path": str(tmp_path / "train"), "num_train_games": -1},
        "env": {"task_types": [1, 2, 3, 4, 5, 6]},
    }
    loader.collect_game_files()
    theirs = {Path(file).parent.relative_to(tmp_path / "train") for file in loader.game_files}
    assert theirs == {Path(task.path) for task in list_games(tmp_path / "train", Counter())}


def test_linked_folders_are_followed_and_a_circle_ends(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / "disk" / name / "trial", household(extra=f"; {name}\n"))
    games = tmp_path / "games"
    write(games / "c/trial")
    for name in ("a", "b"):
        (games / name).symlink_to(tmp_path / "disk" / name)
    (games / "c/up").symlink_to(games)
    (tmp_path / "disk/a/other").symlink_to(tmp_path / "disk")
    tasks = list_games(games, Counter())
    assert [task.path for task in tasks] == ["a/other/b/trial", "a/trial", "c/trial"]
    settings = {"name": "alfworld", "games": {"folder": str(games)}}
    env = environment_settings(settings, "env")
    digest = ENVIRONMENT.user_files_digest(env, "assets")
    write(tmp_path / "disk/b/trial", household() | {"solvable": 0})
    assert ENVIRONMENT.user_files_digest(env, "assets") != digest


def task_of(folder) -> Task:
    return Task("one", folder.name, load_compiled(folder).content_hash, "pick_and_place_simple")


def test_an_episode(tmp_path):
    task = task_of(write(tmp_path / "game"))
    env = AlfworldEnv(tmp_path)
    with pytest.raises(RuntimeError):
        env.step("look")
    with pytest.raises(RuntimeError):
        env.admissible_commands()
    first = env.reset(task)
    assert first.goal == "put a mug on desk."
    assert first.text.endswith("\n\nYour task is to: put a mug on desk.")
    step = env.step("jump")
    assert (step.observation.text, step.info, step.progress) == (
        "Nothing happens.",
        {"admissible": False},
        0.0,
    )
    steps = [env.step(command) for command in WIN]
    assert [step.progress for step in steps] == [0, 0.5, 0, 0.5]
    assert [step.env_reward for step in steps] == [0, 0, 0, 1]
    assert [(step.done, step.success) for step in steps] == [(False, False)] * 3 + [(True, True)]
    assert all(step.info == {"admissible": True} for step in steps)
    with pytest.raises(RuntimeError):
        env.step("look")
    assert env.reset(task) == first


def test_wrong_arguments_are_refused_and_change_nothing(tmp_path):
    task = task_of(write(tmp_path / "game"))
    env = AlfworldEnv(tmp_path)
    env.reset(task)
    with pytest.raises(TypeError, match="step: an action must be a string, not "):
        env.step(None)
    with pytest.raises(UserError, match="content hash"):
        env.reset(replace(task, content_hash="0" * 64))
    assert pickle.loads(pickle.dumps(env)).step("look") == env.step("look")


def test_the_official_engine_without_its_packages_says_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "alfworld", None)
    monkeypatch.setitem(sys.modules, "alfworld.agents.environment.alfred_tw_env", None)
    with pytest.raises(UserError, match=r"pip install -e '\.\[alfworld\]'"):
        AlfworldEnv(tmp_path, "textworld")


def test_pickle_keeps_the_place_in_an_episode(tmp_path):
    env = AlfworldEnv(tmp_path)
    env.reset(task_of(write(tmp_path / "game")))
    for command in WIN[:3]:
        env.step(command)
    copy = pickle.loads(pickle.dumps(env))
    assert copy.admissible_commands() == env.admissible_commands()
    assert copy.step(WIN[3]) == env.step(WIN[3])
    assert pickle.loads(pickle.dumps(AlfworldEnv(tmp_path))).engine == "native"
