"""Game files: what is refused and how it is named, hashes, listings, and the environment."""

import json
import pickle
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from household import household

from hgrpo.envs.alfworld.env import AlfworldEnv
from hgrpo.envs.alfworld.gamefile import content_hash, list_games, load_compiled
from hgrpo.envs.alfworld.settings import TASK_TYPES
from hgrpo.envs.base import Task
from hgrpo.envs.kinds import environment_settings
from hgrpo.envs.user_files import user_files_digest
from hgrpo.errors import UserError

WIN = ["go to shelf 1", "take mug 1 from shelf 1", "go to desk 1", "move mug 1 to desk 1"]


def write(folder, data=None, task="pick_and_place_simple", text=None):
    folder.mkdir(parents=True, exist_ok=True)
    data = household() if data is None else data
    (folder / "game.tw-pddl").write_text(
        json.dumps(data) if text is None else text, encoding="utf-8"
    )
    (folder / "traj_data.json").write_text(json.dumps({"task_type": task}), encoding="utf-8")
    return folder


def refused(folder) -> str:
    with pytest.raises(UserError) as error:
        load_compiled(folder)
    return str(error.value)


def test_files_that_are_missing_or_cut_off(tmp_path):
    path = tmp_path / "game.tw-pddl"
    assert refused(tmp_path) == f"{path}: no such file"
    write(tmp_path, text=json.dumps(household())[:500])
    assert refused(tmp_path).startswith(f"{path}: not valid JSON, perhaps cut off")
    write(tmp_path, text="[1]")
    assert refused(tmp_path) == f"{path}: a JSON object was expected, not list"
    (write(tmp_path) / "traj_data.json").unlink()
    assert refused(tmp_path) == f"{tmp_path / 'traj_data.json'}: no such file"
    write(tmp_path, task="juggle")
    assert refused(tmp_path).endswith("traj_data.json: unknown task_type 'juggle'")


@pytest.mark.parametrize("key", ["pddl_domain", "grammar", "pddl_problem"])
def test_keys_that_are_missing_or_of_another_kind(tmp_path, key):
    data = household()
    write(tmp_path, data | {key: 3})
    assert refused(tmp_path).endswith(f"game.tw-pddl: the key {key!r} must hold text")
    del data[key]
    write(tmp_path, data)
    assert refused(tmp_path).endswith(f"game.tw-pddl: the key {key!r} is missing")


@pytest.mark.parametrize("walkthrough", [5, 0, "look", "", [1, 2], ["look", None], {"look": 1}])
def test_a_walkthrough_is_a_list_of_commands(tmp_path, walkthrough):
    write(tmp_path, household() | {"walkthrough": walkthrough})
    expected = f"{tmp_path}/game.tw-pddl: the key 'walkthrough' must hold a list of commands"
    assert refused(tmp_path) == expected
    # The official loader does not read walkthroughs.
    assert len(list_games(tmp_path, Counter())) == 1


@pytest.mark.parametrize("walkthrough", [None, [], ["look"]])
def test_a_walkthrough_may_be_absent(tmp_path, walkthrough):
    game = load_compiled(write(tmp_path, household() | {"walkthrough": walkthrough}))
    assert game.walkthrough == tuple(walkthrough or ())


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ("(exists (?r - receptacle) (inside ?r))", "malformed goal: unknown predicate 'inside'"),
        ("(opened ?r)", r"variable '\?r' of 'opened' is not declared"),
        ("(opened Drawer_bar_1 Desk_bar_1)", "'opened' takes 1 arguments, not 2"),
        ("(receptacleType Desk_bar_1 BathType)", "malformed goal: undeclared object 'bathtype'"),
        ("opened", "malformed goal: a condition in parentheses was expected"),
        ("(and (opened Drawer_bar_1)", r"a '\)' is missing"),
        ("(opened Drawer_bar_1))))", r"a '\)' too many"),
        ("(and) (and)", "malformed goal: one condition was expected"),
        ("(not (opened Drawer_bar_1))", "the game is already won at reset"),
    ],
)
def test_bad_goals(tmp_path, goal, message):
    write(tmp_path, household(goal))
    with pytest.raises(UserError, match=rf"game\.tw-pddl: .*{message}"):
        load_compiled(tmp_path)


def test_games_marked_unsolvable_are_refused(tmp_path):
    write(tmp_path, household() | {"solvable": False})
    assert "solvable: false" in refused(tmp_path)


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


def test_listing_is_sorted_and_says_what_it_left_out(tmp_path):
    for name in ("b/trial_2", "b/trial_1", "a/trial_1"):
        write(tmp_path / name, household(extra=f"; {name}\n"))
    write(tmp_path / "a/won", household("(not (opened Drawer_bar_1))"))
    write(tmp_path / "a/marked", household() | {"solvable": False})
    write(tmp_path / "c-Sliced/trial", household())
    (write(tmp_path / "d/none") / "game.tw-pddl").unlink()
    (write(tmp_path / "e/cut", text="{") / "more").mkdir()
    write(tmp_path / "e/typed", task="juggle")
    (write(tmp_path / "e/untyped") / "traj_data.json").write_text("{}", encoding="utf-8")
    skipped = Counter()
    tasks = list_games(tmp_path, skipped)
    assert [task.path for task in tasks] == ["a/trial_1", "b/trial_1", "b/trial_2"]
    assert tasks[0] == Task(
        "a/trial_1", "a/trial_1", content_hash(household()), "pick_and_place_simple"
    )
    bad = next(reason for reason in skipped if "bad" in reason)
    assert bad.startswith("bad game, the first: e/cut/game.tw-pddl: not valid JSON, perhaps cut")
    assert skipped == {
        "marked unsolvable": 1,
        "won at reset": 1,
        "slicing tasks are not supported": 1,
        "no game file": 1,
        bad: 3,
    }
    with pytest.raises(UserError, match="no such folder"):
        list_games(tmp_path / "nowhere", Counter())
    with pytest.raises(UserError, match="no playable games"):
        list_games(tmp_path / "d", Counter())


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
    digest = user_files_digest(env, "assets")
    write(tmp_path / "disk/b/trial", household() | {"solvable": 0})
    assert user_files_digest(env, "assets") != digest


def test_a_byte_order_mark_is_no_part_of_a_game(tmp_path):
    for file in write(tmp_path / "game").iterdir():
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert [task.content_hash for task in list_games(tmp_path, Counter())] == [
        content_hash(household())
    ]


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


@pytest.mark.parametrize("action", [None, b"look", 3, ["look"]])
def test_an_action_that_is_no_text_changes_nothing(tmp_path, action):
    env = AlfworldEnv(tmp_path)
    env.reset(task_of(write(tmp_path / "game")))
    with pytest.raises(TypeError, match="step: an action is text, not "):
        env.step(action)
    assert pickle.loads(pickle.dumps(env)).step("look") == env.step("look")


def test_a_task_of_other_content_is_refused(tmp_path):
    task = task_of(write(tmp_path / "game"))
    env = AlfworldEnv(tmp_path)
    with pytest.raises(UserError, match="content hash"):
        env.reset(replace(task, content_hash="0" * 64))
    with pytest.raises(UserError, match="unknown ALFWorld engine 'unity'"):
        AlfworldEnv(tmp_path, "unity")


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
