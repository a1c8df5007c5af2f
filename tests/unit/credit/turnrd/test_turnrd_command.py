"""The command that fits TurnRD: from round to round, and its errors."""

import json

import pytest
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
        arguments = [
            "--config",
            json.dumps({"credit": {"kind": "turnrd"} | credit}),
            "--seed",
            str(SEED),
        ]
        arguments += ["--round", str(len(folders)), "--rounds", *map(str, folders)]
        arguments += ["--previous", str(previous)] if previous else []
        run_command("credit_fit", *arguments, "--out", out)
        return json.loads((out / "train_log.json").read_bytes())["rows"]

    return call


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


def test_without_a_warm_start_the_last_model_is_not_read(command, rounds, tmp_path):
    cold = CREDIT | {"fit": CREDIT["fit"] | {"warm_start": False}}
    command(rounds, tmp_path / "one", cold)
    command(rounds, tmp_path / "two", cold, tmp_path / "no_such_folder")
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two


def refused(command, capsys, *arguments, **named):
    with pytest.raises(SystemExit) as stopped:
        command(*arguments, **named)
    assert stopped.value.code == 2
    message = capsys.readouterr().err
    assert "Traceback" not in message
    return next(line for line in message.splitlines() if "error:" in line)


def test_a_loss_that_is_not_finite_is_one_line(command, rounds, tmp_path, capsys):
    credit = CREDIT | {"fit": CREDIT["fit"] | {"lr": 1e30, "epochs": 20, "patience": 20}}
    message = refused(command, capsys, rounds, tmp_path / "out", credit)
    assert "round_2: cannot fit TurnRD: the loss is not finite" in message
    assert not (tmp_path / "out").exists()


def test_a_model_for_other_embeddings_is_named(command, rounds, tmp_path, capsys):
    write_round(tmp_path / "wide", 1, [["a", "b"]], width=WIDTH + 2)
    command([tmp_path / "wide"], tmp_path / "fit")
    message = refused(command, capsys, rounds, tmp_path / "out", previous=tmp_path / "fit")
    assert f"{tmp_path / 'fit'}: the model expects embeddings of width 8, got 6" in message


def test_rounds_without_goals_cannot_condition_on_them(command, rounds, tmp_path, capsys):
    film = CREDIT | {"model": CREDIT["model"] | {"film": True}}
    assert "`model.film` requires goal" in refused(command, capsys, rounds, tmp_path / "out", film)
