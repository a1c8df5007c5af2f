"""The analysis panel: nobody gets it unasked, and with it the other panels stay as they are."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml
from stage_settings import run_stage, stage_settings

from hgrpo.archive import unpacked
from hgrpo.cli.run_stage import read_settings
from hgrpo.config.canonical import settings_digest
from hgrpo.envs.base import Task
from hgrpo.envs.panels import SPLITS, check_disjoint, read_panels, share_out
from hgrpo.envs.sokoban.files import level_text
from hgrpo.envs.sokoban.level import canonical, read_level
from hgrpo.errors import UserError
from hgrpo.stages import order
from hgrpo.stages.evaluate import plays
from hgrpo.stages.job import Job
from hgrpo.study.study import load_study

SIZES = {"train": 12, "validation": 5, "test": 6}
WORLDS = {
    "alfworld": {"name": "alfworld", "games": {"generate": {}}},
    "chores": {"name": "chores", "turn_cap": 3, "chores": 3, "expert": {"turn_cap": 3}},
    "sokoban": {"name": "sokoban"},
    "webshop": {"name": "webshop", "products": {"generate": {"products": 90}}},
}


def make(out: Path, world: dict, **panels) -> Path:
    """The assets of an environment with these panels."""
    config = {"env": world | {"panels": SIZES | panels}}
    run_stage("assets", "--config", json.dumps(config), "--seed", 3, "--out", out)
    return out


def files(assets: Path) -> dict[str, bytes]:
    """The files that play reads, by name."""
    folder = unpacked(assets / "tasks.tar.gz")
    found = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    return {str(name): path.read_bytes() for name, path in found.items()}


def hashes(assets: Path) -> dict[str, list[str]]:
    """The content hashes of every panel, in panel order."""
    panels = read_panels(assets / "panels.json")
    return {panel: [task.content_hash for task in tasks] for panel, tasks in panels.items()}


@pytest.mark.parametrize("name", WORLDS)
def test_it_changes_no_other_panel_and_no_file_of_theirs(tmp_path, name):
    plain = make(tmp_path / "plain", WORLDS[name])
    none = make(tmp_path / "none", WORLDS[name], analysis=0)
    asked = make(tmp_path / "asked", WORLDS[name], analysis=7)
    for file in ("panels.json", "tasks.tar.gz"):
        assert (plain / file).read_bytes() == (none / file).read_bytes()
    panels, others = read_panels(asked / "panels.json"), read_panels(plain / "panels.json")
    assert list(panels) == [*SPLITS, "analysis"] and list(others) == [*SPLITS]
    assert {split: panels[split] for split in SPLITS} == others
    assert len({task.task_id for tasks in panels.values() for task in tasks}) == 12 + 5 + 6 + 7
    assert len(panels["analysis"]) == 7
    before, after = files(plain), files(asked)
    assert {name: after[name] for name in before} == before
    manifest = json.loads((asked / "manifest.json").read_bytes())
    assert manifest["panels"]["analysis"]["tasks"] == 7
    assert "analysis" not in json.loads((plain / "manifest.json").read_bytes())["panels"]
    again = make(tmp_path / "again", WORLDS[name], analysis=7)
    assert (again / "panels.json").read_bytes() == (asked / "panels.json").read_bytes()


def test_its_levels_of_sokoban_are_twins_of_no_other(tmp_path):
    assets = make(tmp_path / "assets", WORLDS["sokoban"], train=120, analysis=60)
    folder = unpacked(assets / "tasks.tar.gz")
    panels = read_panels(assets / "panels.json")
    forms = [
        canonical(read_level(level_text(folder, task.path)))
        for tasks in panels.values()
        for task in tasks
    ]
    assert len(set(forms)) == len(forms) == 120 + 5 + 6 + 60
    types = Counter(task.task_type for task in panels["analysis"])
    assert sorted(types.values()) == [20, 20, 20]


@pytest.mark.parametrize("name", ["alfworld", "sokoban"])
def test_of_a_folder_it_takes_training_tasks_that_are_left(tmp_path, name):
    sizes = {"train": 30} if name == "sokoban" else {"train": 9}
    made = make(tmp_path / "made", WORLDS[name], **sizes)
    source = unpacked(made / "tasks.tar.gz")
    if name == "sokoban":
        places = {split: f"{split}.xsb" for split in SPLITS}
        world = {"levels": {"folder": str(source / "levels"), "splits": places}}
    else:
        places = {split: split for split in SPLITS}
        world = {"games": {"folder": str(source / "games"), "splits": places}}
    world["name"] = name
    plain = hashes(make(tmp_path / "plain", world, train=4))
    some = hashes(make(tmp_path / "some", world, train=4, analysis=5))
    assert {split: some[split] for split in SPLITS} == plain
    whole = hashes(make(tmp_path / "whole", world, train=None))["train"]
    assert some["analysis"] == whole[4:9]
    rest = hashes(make(tmp_path / "rest", world, train=None, analysis=5))
    assert (rest["analysis"], rest["train"]) == (whole[:5], whole[5:])
    with pytest.raises(
        UserError, match=r"panels.analysis: 99 \w+ are wanted beside 4 for training"
    ):
        make(tmp_path / "many", world, train=4, analysis=99)
    assert not (tmp_path / "many").exists()


def test_goals_of_a_shop_are_taken_before_training_takes_the_rest(tmp_path):
    whole = read_panels(make(tmp_path / "a", WORLDS["webshop"], train=None) / "panels.json")
    rest = make(tmp_path / "b", WORLDS["webshop"], train=None, analysis=7) / "panels.json"
    found = read_panels(rest)
    assert found["analysis"] + found["train"] == whole["train"]
    assert len(found["analysis"]) == 7
    with pytest.raises(UserError, match=r"panels\.analysis: \d+ goals are too few"):
        make(tmp_path / "c", WORLDS["webshop"], analysis=9999)


def test_shares_by_hand(tmp_path):
    def share(number, split="train", **sizes):
        return share_out(split, list(range(number)), sizes, tmp_path, "tasks")

    assert share(5, train=3) == {"train": [0, 1, 2]}
    assert share(5, train=3, analysis=2) == {"train": [0, 1, 2], "analysis": [3, 4]}
    assert share(5, train=None, analysis=2) == {"train": [2, 3, 4], "analysis": [0, 1]}
    assert share(5, split="test", test=4, train=1, analysis=2) == {"test": [0, 1, 2, 3]}
    for number, sizes, said in (
        (2, {"train": 3}, f"panels.train: 3 tasks are wanted, {tmp_path} has 2"),
        (0, {"train": None}, f"panels.train: some tasks are wanted, {tmp_path} has 0"),
        (
            2,
            {"train": None, "analysis": 2},
            f"panels.analysis: 2 tasks are wanted beside some for training, {tmp_path} has 2",
        ),
    ):
        with pytest.raises(UserError) as caught:
            share(number, **sizes)
        assert str(caught.value) == said


@pytest.fixture
def configs(project, tmp_path):
    return Path(shutil.copytree(project / "configs", tmp_path / "configs"))


def test_a_study_that_asks_for_none_keeps_its_settings_and_keys(configs):
    for path in sorted((configs / "studies").glob("*.yaml")):
        study = load_study(path)
        env = configs / f"envs/{study.config.env}.yaml"
        text = env.read_text(encoding="utf-8")
        given = yaml.safe_load(text)
        if given.get("panels", {}).get("analysis"):
            continue
        panels = given.get("panels", {}) | {"analysis": 0}
        env.write_text(yaml.safe_dump(given | {"panels": panels}), encoding="utf-8")
        spelt_out = load_study(path)
        env.write_text(text, encoding="utf-8")
        assert spelt_out.resolved() == study.resolved()
        assert "analysis" not in study.resolved()["env"]["panels"]
        for stage in order.STAGES:
            for method in study.methods if order.belongs_to_an_arm(stage) else [None]:
                before, after = (stage_settings(one, stage, method) for one in (study, spelt_out))
                assert before == after
    settings = [
        read_settings(order.load("assets"), {"env": WORLDS["chores"] | {"panels": panels}}, Job())
        for panels in (SIZES, SIZES | {"analysis": 0}, SIZES | {"analysis": 7})
    ]
    plain, none, asked = (settings_digest(one.model_dump(mode="json")) for one in settings)
    assert plain == none != asked


def test_no_evaluation_plays_it(configs):
    for path in sorted((configs / "studies").glob("*.yaml")):
        study = load_study(path)
        for method in study.methods:
            given = stage_settings(study, "evaluate", method)
            settings = read_settings(order.load("evaluate"), given, Job(method))
            assert {panel for panel, _, _ in plays(settings)} <= {"validation", "test"}


def test_what_training_has_seen_is_refused(tmp_path):
    path = make(tmp_path / "assets", WORLDS["chores"], analysis=7) / "panels.json"
    panels = json.loads(path.read_bytes())
    panels["analysis"][2]["content_hash"] = panels["train"][4]["content_hash"]
    path.write_text(json.dumps(panels), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        read_panels(path)
    assert str(caught.value) == (
        f"{path}: panels overlap: analysis:analysis-2 has the content of train:train-4"
    )


def test_an_environment_that_makes_none_is_named():
    with pytest.raises(UserError, match="panel 'analysis' has no tasks"):
        check_disjoint({"train": [Task("a", "a", "a", "x")], "analysis": []})
