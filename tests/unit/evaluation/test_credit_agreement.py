"""The command on a toy round: every kind of assigner, its tables, its pictures, its mistakes."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hall import MAX_TOKENS, TURN_CAP, hall_collector
from scipy.stats import spearmanr
from tiny_policy import HallEnv, hall_tasks, make_policy
from toy_round import imitate_random_doors

from hgrpo.agent.conversation import Conversation
from hgrpo.archive import pack
from hgrpo.credit.base import Context, Group, make_assigner
from hgrpo.credit.kinds import CreditConfig
from hgrpo.credit.turnrd.model import build_model, save_model
from hgrpo.credit.turnrd.settings import Settings
from hgrpo.errors import UserError
from hgrpo.games.panels import write_panels
from hgrpo.report.credit_tables import CREDITS
from hgrpo.stages import credit_agreement, playing
from hgrpo.stages.paths import Job
from hgrpo.trajectories.store import sequence_table, turn_table, write_table

TASKS = hall_tasks(8)
SEED, PLAYED = 11, 2
TURNRD = {"kind": "turnrd", "model": {"layers": 1, "hidden": 16, "heads": 2}}
FREE = {"dollars_per_million_input": 0, "dollars_per_million_output": 0}
RUBRIC = {"kind": "judge", "model": "offline-rubric", "base_url": "service", **FREE}
CREDIT = {
    "Progressive": {"kind": "progress"},
    "flat": {"kind": "flat"},
    "flat_again": {"kind": "flat"},
    "shuffled": {"kind": "random"},
    "GiGPO": {"kind": "state_graph", "terms": [{"value": "mc_mean", "credit": "G-V"}]},
    "rubric": RUBRIC | {"normalisation": "share"},
    "unreachable": RUBRIC | {"base_url": "http://127.0.0.1:1/v1", "api_key_env": "HGRPO_NO_KEY"},
    "fitted": TURNRD,
    "unfitted": TURNRD,
    "played": {"kind": "counterfactual", "alternatives": 2},
}
FILES = {"credits.parquet", "correlations.csv", "checks.csv", "twins.csv"}
FILES |= {"index.json", "summary.json"}
FILES |= {f"{name}.{kind}" for name in ("agreement", "gallery") for kind in ("svg", "csv")}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A round on the hall, the policy that played it, and a fitted model."""
    root = tmp_path_factory.mktemp("study")
    policy = make_policy(root / "base")
    imitate_random_doors(policy)
    policy.save_adapter(root / "policy")
    collector = hall_collector(policy)
    groups = collector.collect(TASKS[:4], 4, ("train", SEED, 1, 0))
    flat = [trajectory for group in groups for trajectory in group]
    (root / "round").mkdir()
    write_table(turn_table(flat, 1, 0), root / "round/turns.parquet")
    write_table(sequence_table(flat, 1, 0), root / "round/sequences.parquet")
    (root / "assets").mkdir()
    panels = {"train": TASKS[:6], "validation": TASKS[6:7], "test": TASKS[7:]}
    write_panels(root / "assets/panels.json", panels)
    pack(root / "assets", [], root / "assets/tasks.tar.gz")
    fit = root / "fitted/seed_11/round_1"
    fit.mkdir(parents=True)
    settings = Settings(**{key: value for key, value in TURNRD.items() if key != "kind"})
    model = build_model(settings.model, policy.causal_lm.config.hidden_size, 1)
    save_model(model, settings.model, policy.causal_lm.config.hidden_size, {}, fit)
    return root, policy, groups


def config(policy, credit=CREDIT):
    env = {"name": "alfworld", "turn_cap": TURN_CAP, "games": {"generate": {}}}
    methods = [
        {"name": name, "label": f"{name} label", "credit": CreditConfig(**section).model_dump()}
        for name, section in credit.items()
    ]
    return {
        "env": env,
        "model": policy.config.model_dump(mode="json"),
        "play": {"temperature": 1.0, "max_action_tokens": MAX_TOKENS, "in_flight": 32},
        "agreement": {"counterfactual_groups": PLAYED},
        "reference": "flat",
        "stream": 0,
        "methods": methods,
    }


def run(study, out, fitted=None, credit=CREDIT, settings=None, **changes):
    """Run the stage; `fitted` are the folders of fits, the fitted model's unless given."""
    root, policy, _ = study
    folders = {
        "rollouts": [root / "round"],
        "assets": root / "assets",
        "base": root / "base",
        "policy": [root / "policy"],
        "cache": root / "cache",
        "out": out,
        "fitted": [root / "fitted/seed_11/round_1"] if fitted is None else fitted,
    }
    content = config(policy, credit) | (settings or {})
    settings = credit_agreement.Settings.model_validate(content)
    halls = SimpleNamespace(factory=lambda settings, tasks: HallEnv)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(playing, "load", lambda name: halls)
        credit_agreement.run(settings, Job(seed=SEED), credit_agreement.Paths(**folders | changes))
    return out


@pytest.fixture(scope="module")
def out(study, tmp_path_factory):
    return run(study, tmp_path_factory.mktemp("out") / "agreement")


@pytest.fixture(scope="module")
def checks(out):
    return pd.read_csv(out / "checks.csv", keep_default_na=False).set_index("method")


def credits_of(out, method):
    table = pd.read_parquet(out / "credits.parquet")
    return table[table["method"] == method].reset_index(drop=True)


def test_every_file_is_there_and_credits_have_their_schema(out, study):
    assert {path.name for path in out.iterdir()} == FILES
    table = pq.read_table(out / "credits.parquet")
    assert table.schema.equals(CREDITS)
    turns = sum(len(t.turns) for group in study[2] for t in group)
    counts = table.to_pandas()["method"].value_counts().to_dict()
    played = sum(len(t.turns) for group in study[2][:PLAYED] for t in group)
    assert counts == dict.fromkeys(set(CREDIT) - {"unreachable"}, turns) | {"played": played}


def test_one_method_under_two_names_is_listed_and_printed(study, tmp_path, capsys):
    graph = CREDIT["GiGPO"]
    scaled = {"kind": "state_graph", "scale": 10.0, "terms": graph["terms"]}
    credit = {"flat": CREDIT["flat"], "GiGPO": graph, "tenfold": scaled}
    whole = {"alpha": 0.0, "turn_norm": "none"}
    updates = {
        name: {"method": {"name": name, "credit": section} | (whole if name != "flat" else {})}
        | {"training": {}}
        for name, section in credit.items()
    }
    run(study, tmp_path / "out", fitted=[], credit=credit, settings={"updates": updates})
    (row,) = pd.read_csv(tmp_path / "out/twins.csv").to_dict("records")
    assert (row["method_a"], row["method_b"]) == ("GiGPO", "tenfold")
    # 1e-6 is added to deviations of 1 and of 10.
    assert row["unexplained"] < 1e-9
    line = "GiGPO label and tenfold label are one method under two names: "
    assert capsys.readouterr().out.count(line) == 1


@pytest.mark.parametrize("method", ["Progressive", "shuffled", "GiGPO", "unfitted"])
def test_credit_is_what_the_assigner_gave_in_training(out, study, method):
    context = Context("alfworld", study[1], Conversation(study[1].tokenizer))
    assigner = make_assigner(CreditConfig(**CREDIT[method]), context)
    expected = [
        row
        for group in study[2]
        for row in assigner.assign(Group(group, ("train", SEED, 1, 0, group[0].task.task_id)))
    ]
    credits = credits_of(out, method)
    np.testing.assert_array_equal(credits["credit"], np.concatenate(expected))
    lengths = [len(t.turns) for group in study[2] for t in group]
    assert credits["turn"].tolist() == [turn for length in lengths for turn in range(length)]
    rollouts = [t.rollout for group in study[2] for t in group]
    assert credits["rollout"].tolist() == np.repeat(rollouts, lengths).tolist()


def test_a_model_is_read_with_the_hidden_states_of_the_policy_that_played(out, study):
    root, policy, groups = study
    context = Context(
        "alfworld", policy, Conversation(policy.tokenizer), fitted=root / "fitted/seed_11/round_1"
    )
    assigner = make_assigner(CreditConfig(**TURNRD), context)
    expected = [row for group in groups for row in assigner.assign(Group(group, ("x",)))]
    credits = credits_of(out, "fitted")["credit"]
    np.testing.assert_allclose(credits, np.concatenate(expected), atol=1e-6)
    assert not np.allclose(credits, credits_of(out, "unfitted")["credit"])


def test_the_checks_say_what_was_promised_and_what_was_not_done(checks, study):
    assert checks["sums_to"].to_dict() == {
        "Progressive": "progress",
        "flat": "",
        "flat_again": "",
        "shuffled": "progress",
        "GiGPO": "",
        "rubric": "return",
        "unreachable": "",
        "fitted": "return",
        "unfitted": "return",
        "played": "",
    }
    errors = pd.to_numeric(checks["largest_sum_error"]).dropna()
    assert set(errors.index) == set(checks.index[checks["sums_to"] != ""])
    assert (errors < 1e-6).all()
    assert checks["same_as"]["flat_again"] == "flat" and checks["same_as"]["flat"] == ""
    assert checks["fallbacks"].to_dict() == dict.fromkeys(CREDIT, 0) | {"unfitted": 16}
    assert "HGRPO_NO_KEY" in checks["note"]["unreachable"]
    assert "equal shares of the return" in checks["note"]["unfitted"]
    assert f"first {PLAYED} groups" in checks["note"]["played"]
    assert checks["turns"]["unreachable"] == 0 and checks["nonzero_share"]["unreachable"] == ""
    assert checks["trajectories"]["played"] == 8
    assert float(checks["nonzero_share"]["flat"]) == 0


def test_correlations_are_between_credits_as_written(out):
    table = pd.read_csv(out / "correlations.csv").set_index(["method_a", "method_b"])
    names = {name for pair in table.index for name in pair}
    assert names == set(CREDIT) - {"flat_again", "unreachable"}
    a, b = (credits_of(out, name)["credit"] for name in ("Progressive", "rubric"))
    expected = pytest.approx(spearmanr(a, b).statistic, abs=1e-5)
    assert table.loc[("Progressive", "rubric"), "pooled"] == expected
    assert table.loc[("Progressive", "played"), "turns"] == len(credits_of(out, "played"))


def test_the_pictures_show_a_win_and_a_loss_of_one_task(out):
    table = pd.read_csv(out / "gallery.csv")
    returns = table.groupby("picture", sort=False)["env_return"].first()
    assert returns["best"] == 1 and returns["worst"] == 0
    pair = table[table["picture"] != "longest"]
    assert pair["task_id"].nunique() == 1
    # The gallery shows groups that every method credited, so every column has its colours.
    assert table["credit"].notna().all()
    assert table["shade"].abs().max() == 1
    index = {entry["name"]: entry for entry in json.loads((out / "index.json").read_bytes())}
    assert set(index) == {"agreement", "gallery"}
    caption = index["agreement"]["caption"]
    assert "Omitted because their credit does not vary: flat label." in caption
    assert "unfitted label: no model is fitted yet" in caption


def test_the_same_rollouts_give_the_same_bytes(out, study, tmp_path):
    again = run(study, tmp_path / "again")
    for name in sorted(FILES - {"summary.json"}):
        assert (again / name).read_bytes() == (out / name).read_bytes(), name
    methods = json.loads((again / "summary.json").read_bytes())["methods"]
    assert list(methods) == ["flat", "flat_again", *(m for m in CREDIT if "flat" not in m)]
    # The second time the judge knows every answer.
    assert methods["rubric"]["report"]["judge_calls"] == 0
    assert methods["rubric"]["report"]["judge_cache_hits"] == 16
    assert methods["played"]["report"]["cf_branches"] > 0


def test_a_study_of_readers_loads_no_policy(study, tmp_path):
    credit = {name: CREDIT[name] for name in ("flat", "Progressive", "shuffled", "GiGPO")}
    none = tmp_path / "nowhere"
    folder = run(study, tmp_path / "out", [], credit, base=none, policy=[none])
    assert len(credits_of(folder, "GiGPO"))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"fitted": [Path("nobody/seed_11/round_1")]},
            "--fitted nobody/seed_11/round_1: expected a folder",
        ),
        ({"policy": [Path("/nowhere")]}, "/nowhere/config.json: missing"),
        ({"policy": []}, r"--policy: expected as many folders as in --rollouts \(1\), got 0"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_written(study, tmp_path, changes, expected):
    with pytest.raises(UserError, match=expected):
        run(study, tmp_path / "out", **changes)
    assert list(tmp_path.iterdir()) == []
