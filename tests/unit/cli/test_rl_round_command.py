"""The command of a round: which evaluations it reads, and what it refuses before it writes."""

import json

import pytest
import torch
from stage_settings import run_command
from tiny_policy import make_policy

from hgrpo.archive import pack, unpacked
from hgrpo.base_model.digest import any_digest
from hgrpo.base_model.safetensors_file import write_tensors
from hgrpo.errors import UserError
from hgrpo.games.base import Task
from hgrpo.games.panels import PANELS
from hgrpo.learning.checkpoints import write_state
from hgrpo.learning.scratch import CRITIC, TRAINER_STATE
from hgrpo.learning.stops import greedy_validation
from hgrpo.learning.update import Learner
from hgrpo.stages import rl_round
from hgrpo.stages.paths import Job
from hgrpo.study.study import load_study

ENV = {"name": "chores", "turn_cap": 2, "chores": 2, "kinds": 20, "expert": {"turn_cap": 2}}
PPO = {"name": "PPO", "advantage": "gae"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A tiny model and the folder with its base."""
    folder = tmp_path_factory.mktemp("model")
    return make_policy(folder / "base"), folder / "base"


@pytest.fixture
def options(model, tmp_path):
    """Options of round 2 of PPO, after a round whose files are all there."""
    policy, base = model
    before = tmp_path / "round_1"
    for folder in (tmp_path / "assets", tmp_path / "sft", before / "adapter"):
        folder.mkdir(parents=True)
    write(tmp_path, {panel: [panel] for panel in PANELS})
    (tmp_path / "made").mkdir()
    pack(tmp_path / "made", (), tmp_path / "assets/tasks.tar.gz")
    (tmp_path / "made").rmdir()
    unpacked(tmp_path / "assets/tasks.tar.gz")  # as the job before it did
    for adapter in (tmp_path / "sft", before / "adapter"):
        policy.save_adapter(adapter)
    write_state(dict.fromkeys(Learner.STATE), before / "adapter" / TRAINER_STATE)
    settings = {"env": ENV, "model": policy.config.model_dump(mode="json"), "training": {}}
    return {
        "config": json.dumps(settings | {"method": PPO}),
        "seed": 11,
        "round": 2,
        "assets": tmp_path / "assets",
        "base": base,
        "sft": tmp_path / "sft",
        "policy": before / "adapter",
        "out": tmp_path / "out",
    }


def write(folder, hashes):
    """A panels file, from panel -> content hashes of its tasks."""
    panels = {
        panel: [Task(f"{panel}-{i}", each, each, "x").__dict__ for i, each in enumerate(tasks)]
        for panel, tasks in hashes.items()
    }
    (folder / "assets/panels.json").write_text(json.dumps(panels), encoding="utf-8")


def refusal(capsys, options) -> str:
    """The one line of a round that ends with status 2 and leaves the folder as it was."""
    folder = options["out"].parent
    before = sorted(folder.rglob("*"))
    words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    with pytest.raises(SystemExit) as ended:
        run_command("rl_round", *words)
    assert ended.value.code == 2
    assert sorted(folder.rglob("*")) == before
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(
    ("base", "tensors", "message"),
    [
        ("0123abcd", ["value_scale"], "the critic belongs to base model 0123abcd, not "),
        (None, [], "contains no critic, because the arm had `advantage: group`"),
        (None, None, "the file is missing"),
    ],
)
def test_a_critic_that_cannot_go_on(capsys, options, base, tensors, message):
    path = options["policy"].parent / CRITIC
    if tensors is not None:
        values = {name: torch.zeros(2) for name in tensors}
        write_tensors(values, path, {"base": base or any_digest(options["base"])})
    assert refusal(capsys, options).startswith(f"error: {path}: {message}")


def test_an_analysis_panel_that_training_has_seen(capsys, options):
    write(
        options["out"].parent, {panel: [panel] for panel in PANELS} | {"analysis": ["a", "train"]}
    )
    assert refusal(capsys, options) == (
        f"error: {options['assets'] / 'panels.json'}: panels overlap: analysis:analysis-1 and "
        "train:train-0 have the same content"
    )


def test_the_rule_of_low_validation_reads_the_rounds_before_and_not_the_supervised_policy(project):
    path = project / "configs/studies/sokoban_smoke.yaml"
    study = load_study(path, {"training.stops.low_validation": {}})
    for index, before in ((1, []), (3, [1, 2])):
        read = rl_round.inputs(study, Job("flatGRPO", 11, index))["evaluations"]
        assert read == [f"eval/flatGRPO/seed_11/round_{r}/summary.json" for r in before]
    assert rl_round.inputs(load_study(path), Job("flatGRPO", 11, 3))["evaluations"] == []


def test_of_an_evaluation_the_rule_reads_greedy_success_on_validation(tmp_path):
    path = tmp_path / "summary.json"
    success = {"validation T=0": 0.005, "validation T=1": 0.4, "test T=0": 0.3}
    path.write_text(json.dumps({"success": success}), encoding="utf-8")
    assert greedy_validation(path) == 0.005
    path.write_text(json.dumps({"success": {"test T=0": 0.3}}), encoding="utf-8")
    with pytest.raises(UserError, match=r"summary\.json: greedy success on the validation"):
        greedy_validation(path)


def test_a_rule_that_reads_an_evaluation_which_is_not_played_is_refused(project):
    options = {"training.stops.low_validation": {}, "evaluation.validate_trained": False}
    message = r"training\.stops\.low_validation: flatGRPO would be stopped by the validation panel"
    with pytest.raises(UserError, match=message):
        load_study(project / "configs/studies/sokoban_smoke.yaml", options)
