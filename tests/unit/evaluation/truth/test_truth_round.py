"""The stage that measures truth: its files, a kill at any point, its mistakes."""

import json
import os
import signal
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from lamps import MAX_TOKENS, TURN_CAP, LampEnv, write_lamp_study

from hgrpo.errors import UserError
from hgrpo.evaluation.truth.measure import Measurement
from hgrpo.evaluation.truth.table import read_truth, truth_schema
from hgrpo.games.panels import read_panels
from hgrpo.stages import playing, truth_round
from hgrpo.stages.paths import Job
from hgrpo.trajectories.played_groups import read_groups

GROUPS, ROLLOUTS, EACH, SKETCH = 3, 4, 3, 16
FILES = {"truth.parquet", "turns.parquet", "sequences.parquet", "summary.json"}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A policy and its games."""
    root = tmp_path_factory.mktemp("study")
    write_lamp_study(root, games=7)
    return root


def settings(**truth):
    tiny = {"hidden_size": 32, "layers": 2, "heads": 4, "kv_heads": 2, "intermediate_size": 48}
    sizes = {"groups": GROUPS, "continuations": EACH, "sketch": SKETCH}
    return truth_round.Settings.model_validate(
        {
            "env": {"name": "alfworld", "turn_cap": TURN_CAP, "games": {"generate": {}}},
            "model": {"name": "lamps", "tiny": tiny | {"max_vocab": 300}, "adapt": "full"},
            "play": {
                "temperature": 1.0,
                "max_action_tokens": MAX_TOKENS,
                "in_flight": 32,
                "rollouts_per_task": ROLLOUTS,
            },
            "truth": sizes | truth,
        }
    )


def run(root, out, scratch, truth=(), **paths):
    folders = {name: root / name for name in ("assets", "base", "policy")}
    lamps = SimpleNamespace(factory=lambda settings, tasks: LampEnv)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(playing, "load", lambda name: lamps)
        truth_round.run(
            settings(**dict(truth)),
            Job(seed=11, round=1, code="abc"),
            truth_round.Paths(**folders | {"out": out, "scratch": scratch} | paths),
        )
    return out


@pytest.fixture(scope="module")
def out(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    return run(root, folder / "truth", folder / "scratch")


def test_there_is_a_row_for_every_turn_of_the_rollouts(out, root):
    assert {path.name for path in out.iterdir()} == FILES
    groups = read_groups(out, read_panels(root / "assets/panels.json")["train"])
    assert [len(group.trajectories) for group in groups] == [ROLLOUTS] * GROUPS
    assert {group.round for group in groups} == {1}
    table = read_truth(out, groups)
    assert pq.read_schema(out / "truth.parquet").equals(truth_schema(SKETCH))
    turns = [turn for g in groups for t in g.trajectories for turn in t.turns]
    assert len(table) == len(turns)
    assert set(table["continuations"].to_pylist()) == {EACH}
    last = np.append(table["turn"].to_numpy()[1:] == 0, True)
    returns = [t.env_return for g in groups for t in g.trajectories]
    np.testing.assert_array_equal(table["value_after"].to_numpy()[last], returns)
    assert not table["se_after"].to_numpy()[last].any()


@pytest.mark.parametrize("moment", ["rollouts", "first group", "last group", "writing"])
def test_a_killed_job_goes_on_and_writes_the_same_bytes(out, root, tmp_path, moment):
    child = os.fork()
    if not child:
        with pytest.MonkeyPatch.context() as patch:
            kill_in(patch, moment)
            run(root, tmp_path / "truth", tmp_path / "scratch")
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert not (tmp_path / "truth").exists()
    with pytest.MonkeyPatch.context() as patch:
        measured = count(patch)
        run(root, tmp_path / "truth", tmp_path / "scratch")
    finished = {"rollouts": 0, "first group": 0, "last group": GROUPS - 1, "writing": GROUPS}[
        moment
    ]
    assert len(measured) == GROUPS - finished
    for name in FILES - {"summary.json"}:
        assert (tmp_path / "truth" / name).read_bytes() == (out / name).read_bytes(), name
    assert untimed(tmp_path / "truth") == untimed(out)
    assert [path.name for path in (tmp_path / "scratch").iterdir()] == ["lock"]


def kill_in(patch, moment):
    def kill(*arguments):
        os.kill(os.getpid(), signal.SIGKILL)

    if moment == "rollouts":
        patch.setattr("hgrpo.evaluation.truth.measure.join_steps", kill)
    elif moment == "writing":
        patch.setattr(truth_round, "_summary", kill)
    else:
        number, measure = [], Measurement.measure

        def measured(self, group):
            number.append(group)
            if len(number) == (1 if moment == "first group" else GROUPS):
                kill()
            measure(self, group)

        patch.setattr(Measurement, "measure", measured)


def count(patch):
    seen, measure = [], Measurement.measure

    def measured(self, group):
        seen.append(group.step)
        measure(self, group)

    patch.setattr(Measurement, "measure", measured)
    return seen


def untimed(folder):
    summary = json.loads((folder / "summary.json").read_bytes())
    return {name: value for name, value in summary.items() if not name.endswith("_s")}


def test_more_continuations_leave_the_rollouts_as_they_are(out, root, tmp_path):
    again = run(root, tmp_path / "truth", tmp_path / "scratch", {"continuations": EACH + 1})
    assert (again / "turns.parquet").read_bytes() == (out / "turns.parquet").read_bytes()
    assert (again / "truth.parquet").read_bytes() != (out / "truth.parquet").read_bytes()


@pytest.mark.parametrize(
    ("truth", "paths", "expected"),
    [
        ({}, {"policy": None}, "^--policy is required, because ground truth is estimated from"),
        ({"groups": 6}, {}, "^truth.groups: 6 games requested, but the training panel has 5$"),
        ({}, {"policy": "nowhere"}, "nowhere/config.json: missing"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(root, tmp_path, truth, paths, expected):
    paths = {name: value and tmp_path / value for name, value in paths.items()}
    with pytest.raises(UserError, match=expected) as error:
        run(root, tmp_path / "truth", tmp_path / "scratch", truth, **paths)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "truth").exists()


def test_a_table_of_other_rollouts_is_refused(out, root, tmp_path):
    panel = read_panels(root / "assets/panels.json")["train"]
    groups = read_groups(out, panel)
    with pytest.raises(UserError, match=r"truth\.parquet: rows do not match the turns"):
        read_truth(out, groups[:-1])
    with pytest.raises(UserError, match=r"truth\.parquet: missing; run `snakemake truth`"):
        read_truth(tmp_path, groups)
    (tmp_path / "truth.parquet").write_bytes((out / "turns.parquet").read_bytes())
    with pytest.raises(UserError, match=r"truth\.parquet: the columns are not those"):
        read_truth(tmp_path, groups)
    (tmp_path / "truth.parquet").write_bytes((out / "truth.parquet").read_bytes()[:-9])
    with pytest.raises(UserError, match=r"truth\.parquet: damaged"):
        read_truth(tmp_path, groups)
