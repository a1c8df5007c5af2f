"""The command that evaluates: what it refuses before it plays."""

import json

import pytest
from stage_settings import run_command

from hgrpo.cli.run_stage import read_settings
from hgrpo.errors import UserError
from hgrpo.games.base import Task
from hgrpo.games.panels import SPLITS, write_panels
from hgrpo.policy import load
from hgrpo.stages import evaluate
from hgrpo.stages.paths import Job

CONFIG = {
    "env": {"name": "alfworld", "games": {"generate": {}}},
    "model": {"name": "tiny", "tiny": {}},
    "evaluation": {"test_games": 1, "validation_games": 1},
    "train": True,
}
WHOLE = {key: value for key, value in CONFIG.items() if key != "train"}


def test_a_folder_that_cannot_be_written_is_found_before_anything_is_loaded(
    monkeypatch, tmp_path, capsys
):
    write_panels(
        tmp_path / "panels.json", {split: [Task(split, split, split, "x")] for split in SPLITS}
    )
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setattr(load, "load_player", lambda *_: pytest.fail("loaded"))
    options = {
        "method": "A",
        "seed": 11,
        "round": 1,
        "assets": tmp_path,
        "base": "b",
        "policy": "p",
    }
    options |= {"config": json.dumps(CONFIG), "out": tmp_path / "file/round_1"}
    words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    with pytest.raises(SystemExit) as stopped:
        run_command("evaluate", *words)
    assert stopped.value.code == 2
    assert str(tmp_path / "file") in capsys.readouterr().err


@pytest.mark.parametrize(
    "train, validated, panels",
    [
        (True, True, ["validation", "test"]),
        (True, False, ["test"]),
        (False, False, ["validation", "test"]),  # the SFT policy's temperature is chosen there
    ],
)
def test_only_trained_arms_may_leave_validation_out(train, validated, panels):
    evaluation = CONFIG["evaluation"] | {"validate_trained": validated, "sft_temperatures": [0.0]}
    sections = WHOLE | {"train": train, "evaluation": evaluation}
    settings = read_settings(evaluate, sections, Job("SFTOnly"))
    assert evaluate.plays(settings) == [(panel, 1, 0.0) for panel in panels]


def test_settings_that_do_not_say_whether_the_arm_trains_are_refused():
    with pytest.raises(UserError, match="--config: train: required, but missing"):
        read_settings(evaluate, WHOLE, Job("GiGPO"))
