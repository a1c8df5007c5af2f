"""Credit of others: the same row as the built-in method that it imitates, and every mistake."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import hgrpo
import hgrpo.credit
from hgrpo.cli import score_credit
from hgrpo.errors import UserError
from hgrpo.evaluation.truth.published import read_credits, read_published
from hgrpo.evaluation.truth.table import TRUTH_FILE
from hgrpo.trajectories.store import TURNS_FILE

PUBLISHED = Path(hgrpo.__file__).parents[1] / "docs/truth"
# What a stranger would write, without this package.
FLAT = """
import pandas as pd
turns = pd.read_parquet("turns.parquet")
trajectory = ["task_id", "rollout"]
returns = turns.groupby(trajectory)["env_reward"].sum()
groups = returns.groupby("task_id")
z = (returns - groups.transform("mean")) / groups.transform("std", ddof=0)
z = z.fillna(0).rename("advantage")
mine = turns[[*trajectory, "turn"]].join(z, on=trajectory).assign(credit=0.0)
mine.sample(frac=1, random_state=0).to_parquet("mine.parquet", index=False)
"""
PROGRESS = """
import pandas as pd
turns = pd.read_parquet("turns.parquet")
turns["paid"] = turns.groupby(["task_id", "rollout"])["env_reward"].transform("sum")
def z(x):
    return (x - x.mean()) / x.std(ddof=0) if x.nunique() > 1 else 0 * x
first = turns[turns["turn"] == 0].set_index(["task_id", "rollout"])["paid"]
returns = first.groupby("task_id").transform(z).rename("return_z")
turns = turns.join(returns, on=["task_id", "rollout"])
place = turns.groupby(["task_id", "turn"])["progress"].transform(z)
turns = turns.assign(credit=turns["progress"], advantage=(turns["return_z"] + place) / 2)
keep = ["task_id", "rollout", "turn", "credit", "advantage"]
turns[keep].to_parquet("mine.parquet", index=False)
"""


def main(monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["score_credit", *map(str, words)])
    score_credit.main()


@pytest.mark.parametrize(
    ("script", "method"), [(FLAT, "flatGRPO"), (PROGRESS, "Progressive")], ids=["flat", "progress"]
)
def test_a_strangers_script_gets_the_row_of_the_method_it_imitates(
    tmp_path, monkeypatch, capsys, script, method
):
    (tmp_path / "turns.parquet").write_bytes((PUBLISHED / "turns.parquet").read_bytes())
    assert script.count("\n") <= 15 and "hgrpo" not in script
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    out = tmp_path / "row.csv"
    main(monkeypatch, tmp_path / "mine.parquet", "--truth", PUBLISHED, "--csv", out)
    mine = pd.read_csv(out).iloc[0]
    built_in = pd.read_csv(PUBLISHED / "truth.csv").set_index("method").loc[method]
    shared = [name for name in mine.index if name not in ("method", "label")]
    assert len(shared) > 15
    for name in shared:
        if isinstance(mine[name], str):
            assert mine[name] == built_in[name], name
        else:
            np.testing.assert_allclose(
                float(mine[name]), float(built_in[name]), rtol=1e-4, atol=1e-5, err_msg=name
            )
    printed = capsys.readouterr().out.splitlines()
    (marked,) = [line for line in printed if line.startswith(">")]
    assert marked.split()[1] == "mine" and len(printed) == 11
    # The built-in methods stand beside it: the same numbers as its own.
    (other,) = [line for line in printed if f"{built_in['label']}  " in line]
    assert other.split("  ", 1)[1].split()[-1] == marked.split()[-1]


def row_of(monkeypatch, tmp_path, *words):
    main(monkeypatch, *words, "--csv", tmp_path / "row.csv")
    return pd.read_csv(tmp_path / "row.csv").iloc[0]


@pytest.mark.parametrize("method", ["flatGRPO", "Progressive", "RandomCredit", "GiGPO_shared"])
def test_a_method_of_configs_gets_the_row_that_its_study_gave_it(
    tmp_path, monkeypatch, capsys, method
):
    monkeypatch.chdir(tmp_path)  # the default folder of rollouts does not depend on it
    mine = row_of(monkeypatch, tmp_path, "--method", method)
    built_in = pd.read_csv(PUBLISHED / "truth.csv").set_index("method").loc[method]
    same = ["label", "beats_shuffled"]
    pd.testing.assert_series_equal(mine[same], built_in[same], check_names=False)
    for name in (
        "credit_pearson",
        "advantage_pearson",
        "within_pearson",
        "sign_accuracy",
        "cosine",
    ):
        expected = pytest.approx(built_in[name], rel=1e-4, abs=1e-5, nan_ok=True)
        assert mine[name] == expected, name
    out, err = capsys.readouterr()
    table, worst = out.split("\n\n")
    assert len(table.splitlines()) == 10  # its published row is left out
    assert ("its credit hardly distinguishes turns" in err) == (method == "GiGPO_shared")
    header, *rows = worst.splitlines()[1:]
    columns = ["task_id", "rollout", "turn", "observation", "action", "credit", "truth"]
    assert header.split() == columns
    assert len(rows) == 10


def test_the_most_wrong_turns_are_those_of_a_calculation_by_hand(monkeypatch, capsys):
    main(monkeypatch, "--method", "Progressive")
    first_row = capsys.readouterr().out.split("\n\n")[1].splitlines()[2]
    turns = pd.read_parquet(PUBLISHED / "turns.parquet")
    truth = pd.read_parquet(PUBLISHED / "truth.parquet")["advantage"]
    z_credit = (turns["progress"] - turns["progress"].mean()) / turns["progress"].std(ddof=0)
    z_truth = (truth - truth.mean()) / truth.std(ddof=0)
    worst = turns.loc[(z_credit - z_truth).abs().idxmax()]
    fields = first_row.split()
    assert fields[:3] == [worst["task_id"], str(worst["rollout"]), str(worst["turn"])]
    assert fields[-2:] == [f"{z_credit[worst.name]:+.1f}", f"{z_truth[worst.name]:+.1f}"]
    assert worst["observation"].split()[0] == fields[3] and fields[-3] == worst["action"]


@pytest.mark.parametrize(
    ("method", "source"),
    [
        ("SFTOnly", "an assigner, which untrained arms lack"),
        ("PPO", r"a critic \(gae\)"),
        *((name, "the policy, its hidden states") for name in ("Vine", "EMPG", "TurnRDV2")),
        ("LLMJudge", "the game or a service"),
    ],
)
def test_a_method_that_needs_more_than_turns_is_refused_in_one_line(monkeypatch, method, source):
    with pytest.raises(UserError, match=f"^{method}: its credit requires {source}") as error:
        main(monkeypatch, "--method", method)
    assert "\n" not in str(error.value)


def test_an_unknown_method_is_named(monkeypatch, tmp_path):
    with pytest.raises(
        UserError, match="Progresive.yaml: no such file; did you mean 'Progressive'"
    ):
        main(monkeypatch, "--method", "Progresive")
    with pytest.raises(UserError, match="not allowed with argument"):
        main(monkeypatch, tmp_path / "mine.parquet", "--method", "Progressive")


@pytest.fixture
def surprise(tmp_path, monkeypatch):
    """A function that adds a method, and scores it."""
    source = "class Mine(CreditAssigner):\n    def assign(self, group):\n        return [{}]\n"
    source = f"import numpy as np\nfrom hgrpo.credit.base import CreditAssigner\n\n\n{source}"
    source += "\n\ndef make(settings, context):\n    return Mine()\n"

    def score(expression, alpha=0.5, more=""):
        (tmp_path / "surprise.py").write_text(source.format(expression), encoding="utf-8")
        methods = tmp_path / "configs/methods"
        methods.mkdir(parents=True, exist_ok=True)
        text = f"name: Surprise\nalpha: {alpha}\ncredit: {{kind: surprise}}\n{more}"
        (methods / "Surprise.yaml").write_text(text, encoding="utf-8")
        monkeypatch.setattr(hgrpo.credit, "__path__", [*hgrpo.credit.__path__, str(tmp_path)])
        monkeypatch.delitem(sys.modules, "hgrpo.credit.surprise", raising=False)
        monkeypatch.setattr(score_credit, "PROJECT", tmp_path)
        main(monkeypatch, "--method", "Surprise")

    return score


@pytest.mark.parametrize(
    ("credit", "alpha", "caution"),
    [
        ("np.array([turn.progress for turn in t.turns])", 0.5, ""),
        (
            "-np.array([np.mean(turn.logprobs) for turn in t.turns])",
            0.5,
            "its advantages correlate negatively with ground truth within trajectories",
        ),
        ("np.zeros(len(t.turns))", 0.5, "caution: Surprise: its credit is the same for all"),
        ("np.arange(len(t.turns))", 0.5, "constant after turn_norm: position"),
        ("np.arange(len(t.turns))", 1.0, "caution: Surprise: alpha is 1, so its credit"),
    ],
)
def test_an_own_method_is_scored_and_credit_without_effect_is_named(
    surprise, capsys, credit, alpha, caution
):
    surprise(f"{credit} for t in group.trajectories", alpha)
    out, err = capsys.readouterr()
    assert out.count(">   Surprise ") == 1
    assert caution in err and bool(caution) == bool(err)


@pytest.mark.parametrize(
    ("credit", "caution"),
    [
        ("1e-3 * np.arange(len(t.turns))", "its credit hardly distinguishes turns"),
        ("1e3 * (np.arange(len(t.turns)) - 3.5)", "its turn credit is over 100 times as large"),
        ("np.random.rand(len(t.turns))", "the credit of a group changes if its trajectories"),
        ("10 + np.arange(len(t.turns))", "of its advantages has one sign"),
        # Each rollout gets the credit of the next one.
        (
            "group.trajectories[(t.rollout + 1) % 8].env_return * np.arange(len(t.turns))",
            "the credit of a group changes if",
        ),
        # One wild number in one group.
        (
            "(np.arange(8) - 3.5) * (1 + 99 * (t.name == 'task train-686 rollout 0'))",
            "1 % of its turns hold over 90 %",
        ),
    ],
)
def test_a_score_that_the_update_does_not_bear_out_is_named(surprise, capsys, credit, caution):
    surprise(f"{credit} for t in group.trajectories", more="turn_norm: none\n")
    line, *_ = capsys.readouterr().err.splitlines()
    assert line.startswith("caution: Surprise: ") and caution in line


@pytest.mark.parametrize(
    ("credit", "where"),
    [
        ("-np.array([turn.progress for turn in t.turns]) - t.env_return", ""),
        ("np.roll([turn.progress for turn in t.turns], 4)", " within trajectories"),
    ],
)
def test_credit_against_the_truth_is_named(surprise, capsys, credit, where):
    surprise(f"{credit} for t in group.trajectories", alpha=0.0)
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith(
        f"caution: Surprise: its advantages correlate negatively with ground truth{where}; "
    )


def test_credit_of_other_turns_that_only_looks_like_chance_is_named(surprise, capsys):
    surprise("np.sort([turn.progress for turn in t.turns]) for t in group.trajectories", alpha=0.0)
    *_, line = capsys.readouterr().err.splitlines()
    assert line.endswith(
        "within trajectories, its correlation with ground truth is not distinguishable from 0"
    )


@pytest.mark.parametrize(
    ("credit", "caution"),
    [
        (lambda t: 0.0, "caution: mine: the advantage in the loss is 0"),
        (lambda t: t["rollout"] / 3, "loss is equal over the turns of every trajectory"),
        (lambda t: 0.1 * 3 + t["turn"] * 1e-17, "the advantage in the loss is equal over"),
        (
            lambda t: (t["turn"] - 3.5) * 1e-9,
            "its correlation with ground truth is not distinguishable from 0",
        ),
        (
            lambda t: t["rollout"] - 3.5 + t["turn"] * 1e-3,
            "its credit hardly distinguishes",
        ),
    ],
)
def test_a_file_of_credit_without_effect_is_named(
    places, tmp_path, monkeypatch, capsys, credit, caution
):
    path = written(tmp_path / "mine.parquet", places.assign(credit=credit))
    main(monkeypatch, path, "--truth", PUBLISHED)
    err = capsys.readouterr().err
    assert caution in err
    # The advantage is what counts: a placeholder for the credit beside it is no mistake.
    truth = pd.read_parquet(PUBLISHED / "truth.parquet")["advantage"]
    both = places.assign(credit=credit, advantage=truth.to_numpy())
    main(monkeypatch, written(path, both), "--truth", PUBLISHED)
    assert capsys.readouterr().err == ""


@pytest.fixture(scope="module")
def places():
    return read_published(PUBLISHED)[0]


def written(path, table):
    table.to_parquet(path, index=False)
    return path


def test_rollout_and_turn_exchanged_are_named(places, tmp_path, monkeypatch, capsys):
    truth = pd.read_parquet(PUBLISHED / "truth.parquet")["advantage"].to_numpy()
    mine = places.assign(credit=truth).rename(columns={"rollout": "turn", "turn": "rollout"})
    main(monkeypatch, written(tmp_path / "mine.parquet", mine), "--truth", PUBLISHED)
    *_, line = capsys.readouterr().err.splitlines()
    assert line == (
        "caution: mine: with rollout and turn swapped, the correlation with ground truth "
        "within trajectories is 1.06; check the order of these two columns"
    )


@pytest.mark.parametrize("index", [["task_id"], ["turn"], ["task_id", "rollout", "turn"]])
def test_columns_that_pandas_wrote_as_an_index_are_columns(places, tmp_path, index):
    mine = places.assign(credit=np.arange(len(places), dtype=np.float64))
    path = tmp_path / "mine.parquet"
    mine.set_index(index).to_parquet(path)
    np.testing.assert_array_equal(read_credits(path, places)[0], np.arange(len(places)))
    mine.replace({"turn": {1: 0}}).set_index(index).to_parquet(path)
    with pytest.raises(UserError, match=rf"^{path}: {first(places)} turn 0 is listed twice$"):
        read_credits(path, places)
    # The published files may be written anew too.
    for name in (TURNS_FILE, TRUTH_FILE):
        table = pq.read_table(PUBLISHED / name)
        pq.write_table(table.replace_schema_metadata(indexed(index)), tmp_path / name)
    pd.testing.assert_frame_equal(read_published(tmp_path)[0], places)


def indexed(names):
    """What pandas notes in a Parquet file about columns that were its index."""
    about = {"index_columns": names, "column_indexes": [], "columns": []}
    return {"pandas": json.dumps(about)}


def first(places):
    return f"{places['task_id'][0]} rollout {places['rollout'][0]}"


@pytest.mark.filterwarnings("error")
def test_scale_and_offset_do_not_matter_however_large(places, tmp_path, monkeypatch, capsys):
    draws = np.random.default_rng(1).normal(size=len(places))
    rows = []
    for name, credit in (("plain", draws), ("huge", draws * 2.0**600), ("far", draws * 1e-6 + 1.0)):
        # The advantage stays, since its sign and direction count.
        path = written(tmp_path / f"{name}.parquet", places.assign(credit=credit, advantage=draws))
        main(monkeypatch, path, "--truth", PUBLISHED, "--csv", tmp_path / "row.csv")
        rows.append(pd.read_csv(tmp_path / "row.csv").drop(columns=["method", "label"]).iloc[0])
    assert rows[0].equals(rows[1])
    assert rows[2]["credit_pearson"] == pytest.approx(rows[0]["credit_pearson"], rel=1e-6)


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda t: t.drop(index=2), "{first}: turn 2 is missing"),
        (lambda t: pd.concat([t, t.iloc[:1]]), "{first} turn 0 is listed twice"),
        (lambda t: t.assign(turn=t["turn"] + 1), "turn 8 was not published"),
        (lambda t: t.assign(rollout=t["rollout"] + 8), "rollout 8: turn 0 was not published"),
        (
            lambda t: t.assign(credit=t["credit"].where(t.index != 1)),
            "{first} turn 1: credit is ",
        ),
        (
            lambda t: t.rename(columns={"credit": "credits"}),
            "unknown column 'credits'; did you mean 'credit'?",
        ),
        (lambda t: t.assign(turn=t["turn"] + 0.5), "not a table of credit "),
    ],
)
def test_a_bad_file_is_one_line_and_nothing_is_written(
    places, tmp_path, monkeypatch, capsys, spoil, expected
):
    path = written(tmp_path / "mine.parquet", spoil(places.assign(credit=0.0)))
    words = [path, "--truth", PUBLISHED, "--csv", tmp_path / "row.csv"]
    with pytest.raises(UserError, match=expected.replace("{first}", first(places))) as error:
        main(monkeypatch, *words)
    message = str(error.value)
    assert message.startswith(f"{path}: ") and "\n" not in message
    assert capsys.readouterr().out == "" and not (tmp_path / "row.csv").exists()


def test_hashes_are_those_of_a_training_job(tmp_path):
    path = tmp_path / "hashes"
    text = f"with open({str(path)!r}, 'a', encoding='utf-8') as file: print(hash('x'), file=file)"
    (tmp_path / "sitecustomize.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "hgrpo.cli.score_credit", "--help"]
    env = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONHASHSEED": "7"}
    assert b"usage: " in subprocess.run(command, env=env, check=True, capture_output=True).stdout
    subprocess.run(command, env=env | {"PYTHONHASHSEED": "0"}, check=True, capture_output=True)
    first, second, third = path.read_text(encoding="utf-8").split()
    assert first != second == third
