"""The command that evaluates: what it refuses before it plays."""

import json
import sys

import pytest

from hgrpo.cli import evaluate
from hgrpo.cli.entry import run
from hgrpo.cli.evaluate import is_trained
from hgrpo.envs.base import Task
from hgrpo.envs.panels import SPLITS, write_panels
from hgrpo.errors import UserError

CONFIG = {
    "env": {"name": "alfworld", "games": {"generate": {}}},
    "model": {"name": "tiny", "tiny": {}},
    "evaluation": {"test_games": 1, "validation_games": 1},
    "train": True,
}


def test_a_folder_that_cannot_be_written_is_found_before_anything_is_loaded(
    monkeypatch, tmp_path, capsys
):
    write_panels(
        tmp_path / "panels.json", {split: [Task(split, split, split, "x")] for split in SPLITS}
    )
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(evaluate, "load_player", lambda *_: pytest.fail("loaded"))
    given = {"method": "A", "seed": 11, "round": 1, "assets": tmp_path, "base": "b", "policy": "p"}
    given |= {"config": json.dumps(CONFIG), "out": tmp_path / "file/round_1"}
    words = [str(word) for name, value in given.items() for word in (f"--{name}", value)]
    monkeypatch.setattr(sys, "argv", ["evaluate", *words])
    with pytest.raises(SystemExit) as stopped:
        run(evaluate.main)
    assert stopped.value.code == 2
    assert str(tmp_path / "file") in capsys.readouterr().err


@pytest.mark.parametrize(
    "config, trained",
    [
        ({"train": False}, False),
        ({"methods": {"SFTOnly": {"train": False}, "flatGRPO": {"train": True}}}, False),
        ({"train": True, "methods": {}}, True),
    ],
)
def test_an_arm_is_looked_up_in_the_stages_settings_or_the_studys(config, trained):
    assert is_trained(config, "SFTOnly") == trained


def test_an_arm_that_nobody_knows_is_named_with_its_neighbour():
    methods = {"GiGPO": {"train": True}, "SFTOnly": {"train": False}}
    with pytest.raises(UserError, match=r"--method GiGO: not in --config; did you mean 'GiGPO'\?"):
        is_trained({"methods": methods}, "GiGO")


@pytest.mark.parametrize("config", [{}, {"methods": ["GiGPO"]}])
def test_settings_that_say_nothing_of_arms_lack_a_key(config):
    with pytest.raises(UserError, match="--config: key 'train' is missing"):
        is_trained(config, "GiGPO")
