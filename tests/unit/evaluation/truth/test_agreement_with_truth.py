"""`credit_agreement` on rollouts whose truth was measured."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from lamps import MAX_TOKENS, TURN_CAP, LampEnv, lamp_collector, write_lamp_study

from hgrpo.credit.kinds import CreditConfig
from hgrpo.errors import UserError
from hgrpo.evaluation.truth.measure import Measurement
from hgrpo.evaluation.truth.settings import TruthConfig
from hgrpo.games.panels import read_panels
from hgrpo.policy.score_sketch import ScoreSketcher
from hgrpo.stages import credit_agreement, playing
from hgrpo.stages.paths import Job

VINE = {"credit": {"kind": "vine", "continuations": 24}, "alpha": 0.0, "turn_norm": "none"}
METHODS = {
    "flat": {"credit": {"kind": "flat"}, "alpha": 1.0},
    "vine": VINE,
    "flipped": VINE | {"credit": VINE["credit"] | {"flipped": True}},
    "progress": {"credit": {"kind": "progress"}, "alpha": 0.5},
}
GROUPS = 10


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A policy and its measured rollouts, twice: with two names of streams, as two rounds."""
    root = tmp_path_factory.mktemp("study")
    policy = write_lamp_study(root, games=14)
    train = read_panels(root / "assets/panels.json")["train"]
    config = TruthConfig(groups=GROUPS, continuations=40, sketch=512)
    for round in (0, 1):
        scratch = root / f"scratch_{round}"
        sketcher = ScoreSketcher(policy, config.sketch, 1.0)
        measured = Measurement(config, 4, 11, round, lamp_collector(policy), sketcher, scratch)
        groups = measured.rollouts(train)
        for group in groups:
            measured.measure(group)
        (root / f"truth_{round}").mkdir()
        measured.write(groups, root / f"truth_{round}")
    return root


def settings():
    tiny = {"hidden_size": 32, "layers": 2, "heads": 4, "kv_heads": 2, "intermediate_size": 48}
    arms = {name: section | {"name": name} for name, section in METHODS.items()}
    training = {"invalid_action_penalty": 0.0}
    return credit_agreement.Settings.model_validate(
        {
            "env": {"name": "alfworld", "turn_cap": TURN_CAP, "games": {"generate": {}}},
            "model": {"name": "lamps", "tiny": tiny | {"max_vocab": 300}, "adapt": "full"},
            "play": {"temperature": 1.0, "max_action_tokens": MAX_TOKENS, "in_flight": 64},
            "agreement": {"counterfactual_groups": GROUPS},
            "reference": "flat",
            "stream": 0,
            "truth": True,
            "methods": [
                {"name": name, "label": f"{name}!", "credit": CreditConfig(**arm["credit"])}
                for name, arm in arms.items()
            ],
            "updates": {name: {"method": arm, "training": training} for name, arm in arms.items()},
        }
    )


def run(root, out, rollouts=("truth_0", "truth_1")):
    paths = credit_agreement.Paths(
        rollouts=[root / name for name in rollouts],
        assets=root / "assets",
        base=root / "base",
        policy=[root / "policy"] * len(rollouts),
        out=out,
    )
    lamps = SimpleNamespace(factory=lambda settings, tasks: LampEnv)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(playing, "load", lambda name: lamps)
        credit_agreement.run(settings(), Job(seed=11), paths)
    return out


@pytest.fixture(scope="module")
def out(root, tmp_path_factory):
    return run(root, tmp_path_factory.mktemp("out") / "agreement")


@pytest.fixture(scope="module")
def table(out):
    return pd.read_csv(out / "truth.csv").set_index(["round", "method"])


def test_every_declared_file_is_there(out):
    declared = credit_agreement.OUTPUTS | credit_agreement.TRUTH_OUTPUTS
    assert {path.name for path in out.iterdir()} == set(declared.values())
    assert set(pd.read_parquet(out / "credits.parquet")["round"]) == {0, 1}
    summary = json.loads((out / "summary.json").read_bytes())
    assert [each["round"] for each in summary["truth"]] == [0, 1] and summary["round"] == 1


@pytest.mark.parametrize("round", [0, 1])
def test_continuations_find_the_truth_and_flipped_ones_its_opposite(table, round):
    vine, flipped = table.loc[round, "vine"], table.loc[round, "flipped"]
    assert list(table.loc[round].index) == [*METHODS, "shuffled"]
    # Noise of 24 continuations is part of Vine's credit.
    assert 0.75 < vine["credit_pearson"] < 1.02 and vine["advantage_pearson_lower"] > 0.6
    assert vine["beats_shuffled"] == "yes" and vine["within_pearson_lower"] > 0.6
    assert vine["sign_accuracy"] > 0.9 and vine["cosine"] > 0.75
    assert vine["extra_trajectories"] > 24 and vine["seconds"] > 0
    for name in ("credit_pearson", "advantage_pearson", "cosine"):
        assert flipped[name] == pytest.approx(-vine[name], abs=1e-5)
    assert flipped["sign_accuracy"] == pytest.approx(1 - vine["sign_accuracy"], abs=1e-5)
    assert flipped["beats_shuffled"] == "no"


def test_a_method_that_knows_the_trajectory_alone_does_not_beat_the_shuffled_truth(table):
    flat, null = table.loc[1, "flat"], table.loc[1, "shuffled"]
    assert np.isnan(flat["credit_pearson"]) and flat["extra_trajectories"] == 0
    assert 0 < flat["advantage_pearson"] < table.loc[1, "vine"]["advantage_pearson"] - 0.2
    assert flat["beats_shuffled"] == null["beats_shuffled"] == "no"
    assert np.isnan(flat["within_pearson"]) and abs(null["within_pearson"]) < 0.02
    assert 0 < null["advantage_pearson"] < flat["advantage_pearson"]
    assert flat["turns"] == null["turns"] and flat["groups"] == GROUPS


def test_more_groups_point_an_update_nearer_to_the_true_gradient(out, table):
    rows = (
        pd.read_csv(out / "truth_gradients.csv")
        .set_index(["round", "method", "groups"])
        .sort_index()
    )
    vine, true = (rows.loc[1, name] for name in ("vine", "truth"))
    for name in ("cosine_same_groups", "cosine_true"):
        assert vine[name].is_monotonic_increasing and vine[name].loc[1] > 0, name
    assert true["cosine_true"].is_monotonic_increasing
    assert (true["cosine_same_groups"] == 1).all()
    assert vine["cosine_same_groups"].loc[1] == pytest.approx(table.loc[1, "vine"]["cosine"])
    assert true["bias"].iloc[0] == pytest.approx(0, abs=1e-5)
    ratio = vine["signal_to_noise"].loc[128] / vine["signal_to_noise"].loc[1]
    assert ratio == pytest.approx(128, rel=1e-4)
    assert vine["variance"].loc[1] / vine["variance"].loc[8] == pytest.approx(8, rel=1e-4)
    # Without noise of its own, the truth's gradient varies less than its estimate's.
    assert true["signal_to_noise"].loc[1] > vine["signal_to_noise"].loc[1]


def test_mistakes_are_counted_by_turn_and_action(out):
    rows = pd.read_csv(out / "truth_errors.csv")
    vine = rows[(rows["round"] == 1) & (rows["method"] == "vine")]
    turns, actions = (vine[vine["by"] == by].set_index("key") for by in ("turn", "action"))
    assert list(turns.index) == ["1", "2", "3", "4", "5"]
    assert {"red", "green", "blue"} <= set(actions.index)
    assert turns["turns"].sum() == actions["turns"].sum()


def test_the_figures_show_the_truth(out):
    index = {entry["name"]: entry for entry in json.loads((out / "index.json").read_bytes())}
    assert list(index) == ["agreement", "gallery", "closest", "updates", "mistakes"]
    assert "Closest: vine!" in index["closest"]["caption"]
    weak = index["closest"]["caption"].partition("ground truth within trajectories: ")[2]
    assert "flat!" in weak and "vine!" not in weak
    gallery = pd.read_csv(out / "gallery.csv")
    assert list(gallery["method"].unique()) == ["truth", "flat", "vine", "flipped", "progress"]


def test_the_same_rollouts_give_the_same_bytes(root, out, tmp_path):
    again = run(root, tmp_path / "again")
    for path in out.iterdir():
        if path.name not in ("summary.json", "truth.csv", "closest.csv", "closest.svg"):
            assert (again / path.name).read_bytes() == path.read_bytes(), path.name
    first, second = (pd.read_csv(folder / "truth.csv") for folder in (out, again))
    pd.testing.assert_frame_equal(first.drop(columns="seconds"), second.drop(columns="seconds"))


def test_rollouts_without_truth_are_refused(root, tmp_path):
    (root / "bare").mkdir(exist_ok=True)
    for name in ("turns.parquet", "sequences.parquet"):
        (root / "bare" / name).write_bytes((root / "truth_0" / name).read_bytes())
    with pytest.raises(UserError, match=r"truth\.parquet: missing"):
        run(root, tmp_path / "out", ["bare"])
    assert not (tmp_path / "out").exists()
