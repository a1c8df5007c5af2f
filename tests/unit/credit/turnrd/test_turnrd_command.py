"""The command that fits TurnRD: from round to round, and what it says of bad input."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from stage_settings import run_command
from test_turnrd_replay import WIDTH, write_round

from hgrpo.credit.replay import read_replay, split
from hgrpo.credit.turnrd.fitting import evaluate
from hgrpo.credit.turnrd.model import load_model
from hgrpo.credit.turnrd.settings import Settings

CREDIT = {
    "model": {"layers": 1, "hidden": 16, "heads": 2, "dropout": 0.0},
    "fit": {"epochs": 2, "batch": 8, "lr": 3e-3, "validation_share": 0.3, "warm_start": True},
}
SEED = 11


@pytest.fixture
def rounds(tmp_path):
    """Folders of two rounds with tasks of their own and some that both play."""
    write_round(tmp_path / "round_1", 1, [[f"t{i}" for i in range(12)]])
    write_round(tmp_path / "round_2", 2, [[f"t{i}" for i in range(8, 20)]])
    return [tmp_path / "round_1", tmp_path / "round_2"]


@pytest.fixture
def command():
    def call(folders, out, credit=CREDIT, previous=None):
        given = [
            "--config",
            json.dumps({"credit": {"kind": "turnrd"} | credit}),
            "--seed",
            str(SEED),
        ]
        given += ["--round", str(len(folders)), "--rounds", *map(str, folders)]
        given += ["--previous", str(previous)] if previous else []
        run_command("credit_fit", *given, "--out", out)
        return json.loads((out / "train_log.json").read_bytes())["rows"]

    return call


def losing(credit):
    """Steps so large that no epoch can help."""
    return credit | {"fit": credit["fit"] | {"lr": 3.0}}


def test_a_fit_goes_on_from_the_last_ones_model(command, rounds, tmp_path):
    first, second = tmp_path / "fit_1", tmp_path / "fit_2"
    command(rounds[:1], first)
    log = command(rounds, second, previous=first)
    settings = Settings(**CREDIT)
    held_out = split(read_replay(rounds), 0.3, SEED)[1]
    begun = evaluate(load_model(first, settings), held_out, settings.fit)
    assert log[0]["phase"] == "start" and log[0]["epoch"] == -1
    assert log[0]["validation_loss"] == pytest.approx(begun["validation_loss"])
    card = json.loads((second / "model.json").read_bytes())["metrics"]
    assert card["rounds"] == [1, 2]
    assert card["epochs_run"] == len(log) - 1
    assert card["best"]["validation_loss"] == min(row["validation_loss"] for row in log)


def test_a_model_that_the_fit_cannot_improve_is_handed_on(command, rounds, tmp_path, capsys):
    first, second = tmp_path / "fit_1", tmp_path / "fit_2"
    command(rounds[:1], first)
    log = command(rounds, second, losing(CREDIT), first)
    before, after = (load_file(folder / "model.safetensors") for folder in (first, second))
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert [row["phase"] for row in log] == ["start", "replay"], "patience 1 ends it there"
    assert json.loads((second / "model.json").read_bytes())["metrics"]["best"]["phase"] == "start"


def test_without_a_warm_start_the_last_model_is_not_read(command, rounds, tmp_path):
    cold = CREDIT | {"fit": CREDIT["fit"] | {"warm_start": False}}
    command(rounds, tmp_path / "one", cold)
    command(rounds, tmp_path / "two", cold, tmp_path / "no_such_folder")
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two


def refused(command, capsys, *given, **named):
    with pytest.raises(SystemExit) as stopped:
        command(*given, **named)
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return next(line for line in said.splitlines() if "error:" in line)


@pytest.mark.parametrize(
    "credit, message",
    [
        ({"fit": {"epoch": 2}}, "--config: credit.fit.epoch: unknown key; did you mean 'epochs'?"),
        ({"fit": {"rank_margin": 0.2}}, "rank_margin: 0.2 is read only with a rank_weight"),
    ],
)
def test_a_mistake_in_the_settings_is_one_line(command, rounds, tmp_path, capsys, credit, message):
    assert message in refused(command, capsys, rounds, tmp_path / "out", credit)


def test_a_loss_that_is_not_finite_is_one_line(command, rounds, tmp_path, capsys):
    credit = CREDIT | {"fit": CREDIT["fit"] | {"lr": 1e30, "epochs": 20, "patience": 20}}
    said = refused(command, capsys, rounds, tmp_path / "out", credit)
    assert "round_2: TurnRD cannot be fitted: the loss is not finite" in said
    assert not (tmp_path / "out").exists()


def test_a_model_for_other_embeddings_is_named(command, rounds, tmp_path, capsys):
    write_round(tmp_path / "wide", 1, [["a", "b"]], width=WIDTH + 2)
    command([tmp_path / "wide"], tmp_path / "fit")
    said = refused(command, capsys, rounds, tmp_path / "out", previous=tmp_path / "fit")
    assert f"{tmp_path / 'fit'}: a model for embeddings of width 8, not 6" in said


def test_rounds_without_goals_cannot_condition_on_them(command, rounds, tmp_path, capsys):
    film = CREDIT | {"model": CREDIT["model"] | {"film": True}}
    assert "film needs them" in refused(command, capsys, rounds, tmp_path / "out", film)


def test_the_log_holds_numbers(command, rounds, tmp_path):
    log = command(rounds[:1], tmp_path / "fit")
    assert all(np.isfinite(row["validation_loss"]) for row in log)
    assert "train_loss" not in log[0] and all("train_loss" in row for row in log[1:])
