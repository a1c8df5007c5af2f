"""The games as a library: Gymnasium's API, panels, and what an import brings."""

import json
import re
import subprocess
import sys

import pytest
from gymnasium.utils.env_checker import check_env
from places import PROJECT

from hgrpo import games
from hgrpo.errors import UserError
from hgrpo.games.kinds import known

FEW = {"train": 8, "validation": 3, "test": 3}


@pytest.fixture(scope="module")
def make():
    """Makes a game with few tasks, and a small shop."""

    def make(name, **options):
        more = {"products": {"generate": {"products": 60}}} if name == "webshop" else {}
        return games.make(name, panels=FEW, **more, **options)

    return make


def commands(env, info):
    """The first admissible commands; on a page without any, a search."""
    return info["admissible_commands"] or [f"search[{info['goal'][:20]}]"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", known())
def test_gymnasiums_checker_passes(make, name):
    check_env(make(name))


@pytest.mark.parametrize("name", known())
def test_every_observation_of_an_episode_is_in_the_space(make, name):
    env = make(name, panel="test")
    for task in env.panels["test"]:
        observation, info = env.reset(options={"task_id": task.task_id})
        assert (info["task_id"], info["content_hash"]) == (task.task_id, task.content_hash)
        over, turns = False, 0
        while not over:
            assert env.observation_space.contains(observation)
            action = commands(env, info)[-1]
            observation, _, terminated, truncated, info = env.step(action)
            over, turns = terminated or truncated, turns + 1
        assert env.observation_space.contains(observation) and not (terminated and truncated)
        assert not truncated or turns == env.settings.turn_cap
        with pytest.raises(RuntimeError, match="after the end"):
            env.step("look")


def test_a_products_categories_are_in_the_space(make):
    env = make("webshop", show_attributes=True)
    _, info = env.reset(seed=0)
    *_, info = env.step(commands(env, info)[-1])
    product = next(c for c in info["admissible_commands"] if c.startswith("click[b0"))
    env.step(product)
    observation, *_ = env.step("click[attributes]")
    assert "\u203a" in observation and env.observation_space.contains(observation)


def test_tasks_of_the_users_files_follow_these_files(tmp_path):
    def hashes():
        return games.make("sokoban", folder=tmp_path / "kept", levels=levels, panels=panels).hashes

    levels, panels = {"folder": str(tmp_path)}, dict.fromkeys(FEW, 1)
    for number, split in enumerate(("train", "valid", "test")):
        level = f"#######\n#@$.{' ' * number}{'#' * (2 - number)}#\n#######\n"
        (tmp_path / split).write_text(level, encoding="utf-8")
    before = hashes()
    (tmp_path / "test").write_text("#####\n#@$.#\n#   #\n#####\n", encoding="utf-8")
    assert hashes()["test"] != before["test"] and hashes()["train"] == before["train"]


def test_resets_follow_their_seed_and_name_tasks_and_panels(make):
    env = make("chores")
    draws = [env.reset(seed=4)[1]["task_id"], *(env.reset()[1]["task_id"] for _ in range(6))]
    again = [env.reset(seed=4)[1]["task_id"], *(env.reset()[1]["task_id"] for _ in range(6))]
    assert draws == again and len({*draws}) > 1
    assert {*draws} <= {task.task_id for task in env.panels["train"]}
    assert env.reset(seed=1, options={"panel": "test"})[1]["task_id"].startswith("test-")
    for options in ({"task_id": "tset-1"}, {"panel": "tset"}, {"task": "test-1"}):
        with pytest.raises(UserError, match=r"tset|task"):
            env.reset(options=options)


@pytest.mark.parametrize(
    ("turn_cap", "actions", "lost", "late"),
    [(5, 10, 0, 1), (5, 5, 1, 0), (3, 6, 0, 1)],
)
def test_a_lost_level_terminates_and_the_turn_cap_truncates(make, turn_cap, actions, lost, late):
    """A level is lost when its actions are used up; replies of one action leave some of ten."""
    generate = {"rows": 6, "columns": 6, "boxes": 1, "lengths": [3, 5]}
    more = {"levels": {"generate": generate}, "expert": {"turn_cap": turn_cap}}
    env = make("sokoban", turn_cap=turn_cap, actions=actions, **more)
    env.reset(seed=1)
    for _ in range(turn_cap):
        *_, terminated, truncated, info = env.step("nothing" if late else "Up")
    assert (terminated, truncated, info["success"]) == (bool(lost), bool(late), False)


def test_tasks_are_kept_in_a_folder_and_hashes_follow_seed_and_settings(make, tmp_path):
    first, other = make("chores", folder=tmp_path), make("chores", folder=tmp_path, seed=1)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    again = make({"name": "chores"}, folder=tmp_path)
    assert files == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert first.hashes == again.hashes == make("chores").hashes
    assert first.hashes.keys() == FEW.keys() and first.hashes["test"] != other.hashes["test"]
    assert make("chores", places=4, folder=tmp_path).hashes["test"] != first.hashes["test"]


def test_the_pages_five_lines_run_on_the_games_alone():
    page = (PROJECT / "docs/games.md").read_text(encoding="utf-8")
    lines = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    assert sum(map(bool, lines.splitlines())) == 5
    show = "import sys, json; print(json.dumps(sorted(sys.modules)))"
    code = f"from hgrpo import games\n{show}\n{lines}\n{show}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    before, *_, after = done.stdout.splitlines()
    roots = {name.partition(".")[0] for name in json.loads(after)}
    assert "gymnasium" in roots and not roots & {"torch", "pandas", "snakemake"}
    assert {name for name in json.loads(before) if name.startswith("hgrpo")} == {
        "hgrpo",
        "hgrpo.games",
    }
    floor = re.compile(r"hgrpo(\.(games|errors|config(\.(strict|bounds))?)\b.*)?")
    assert [
        name for name in json.loads(after) if name.startswith("hgrpo") and not floor.fullmatch(name)
    ] == []


def test_the_pages_other_examples_run():
    page = (PROJECT / "docs/games.md").read_text(encoding="utf-8")
    further = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[1:]
    assert further
    for code in further:
        subprocess.run([sys.executable, "-c", code], cwd=PROJECT, check=True)
