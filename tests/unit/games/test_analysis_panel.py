"""The analysis panel: optional, and without effect on the other panels."""

import json
from pathlib import Path

import pytest
from stage_settings import run_stage

from hgrpo.archive import unpacked
from hgrpo.errors import UserError
from hgrpo.games.panels import SPLITS, read_panels, share_out, stratified
from hgrpo.stages.sections import environment_settings

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
    paths = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    return {str(name): path.read_bytes() for name, path in paths.items()}


@pytest.mark.parametrize("name", WORLDS)
def test_it_changes_no_other_panel_and_no_file_of_theirs(tmp_path, name):
    plain = make(tmp_path / "plain", WORLDS[name])
    analysed = make(tmp_path / "analysed", WORLDS[name], analysis=7)
    panels, others = read_panels(analysed / "panels.json"), read_panels(plain / "panels.json")
    assert list(panels) == [*SPLITS, "analysis"] and list(others) == [*SPLITS]
    assert {split: panels[split] for split in SPLITS} == others
    assert len({task.task_id for tasks in panels.values() for task in tasks}) == 12 + 5 + 6 + 7
    assert len(panels["analysis"]) == 7
    before, after = files(plain), files(analysed)
    assert {name: after[name] for name in before} == before
    manifest = json.loads((analysed / "manifest.json").read_bytes())
    assert manifest["panels"]["analysis"]["tasks"] == 7


def test_settings_without_it_keep_their_keys():
    plain, zero, seven = (
        environment_settings(WORLDS["chores"] | {"panels": SIZES | more}, "x").model_dump()[
            "panels"
        ]
        for more in ({}, {"analysis": 0}, {"analysis": 7})
    )
    assert plain == zero == SIZES
    assert seven == SIZES | {"analysis": 7}


def test_goals_of_a_shop_are_taken_before_training_takes_the_rest(tmp_path):
    whole = read_panels(make(tmp_path / "a", WORLDS["webshop"], train=None) / "panels.json")
    rest = make(tmp_path / "b", WORLDS["webshop"], train=None, analysis=7) / "panels.json"
    panels = read_panels(rest)
    assert panels["analysis"] + panels["train"] == whole["train"]
    assert len(panels["analysis"]) == 7
    with pytest.raises(UserError, match=r"panels\.analysis: too few tasks \(9999 required, "):
        make(tmp_path / "c", WORLDS["webshop"], analysis=9999)


def test_shares_by_hand():
    def share(number, split="train", **sizes):
        return panels_of(share_out(split, range(number), sizes))

    assert share(5, train=3) == {"train": [0, 1, 2]}
    assert share(5, train=3, analysis=2) == {"train": [0, 1, 2], "analysis": [3, 4]}
    assert share(5, train=None, analysis=2) == {"train": [2, 3, 4], "analysis": [0, 1]}
    assert share(5, split="test", test=4, train=1, analysis=2) == {"test": [0, 1, 2, 3]}
    assert share(2, train=3, analysis=1) == {"train": [0, 1]}


def panels_of(pairs) -> dict[str, list[int]]:
    panels: dict[str, list[int]] = {}
    for panel, row in pairs:
        panels.setdefault(panel, []).append(row)
    return panels


def test_prefixes_are_stratified_and_the_order_follows_the_stream():
    rows = [("b", i) for i in range(4)] + [("a", i) for i in range(4)]
    order = stratified(rows, lambda row: row[0], "test", 0)
    assert [kind for kind, _ in order] == ["a", "b"] * 4
    assert sorted(order) == sorted(rows)
    assert order != stratified(rows, lambda row: row[0], "test", 1)
