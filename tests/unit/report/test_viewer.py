"""The page of single trajectories: what is on it, and that it is safe and the same every time."""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stage_settings import run_stage

from hgrpo.errors import UserError
from hgrpo.evaluation.truth.table import NUMBERS, SKETCH, truth_schema
from hgrpo.games.base import Task
from hgrpo.report.credit_tables import CREDITS
from hgrpo.report.viewer import ALL_ARMS, Source, collect, collect_truth, render, within
from hgrpo.trajectories.store import (
    SEQUENCES_FILE,
    TURNS_FILE,
    sequence_table,
    turn_table,
    write_table,
)
from hgrpo.trajectories.trajectory import Trajectory, Turn

LABELS = {"flatGRPO": "flat GRPO", "Vine": "Vine"}


def trajectory(name, actions, credit, **more):
    """A trajectory whose turn t has t + 1 tokens of log-prob -0.5 each."""
    turns, start = [], 0
    for number, (action, value) in enumerate(zip(actions, credit, strict=True)):
        end = start + number + 1
        turns.append(Turn(f"seen {number}", action, (start, end), 0.0, 0.25, True, False))
        turns[-1].logprobs = [-0.5] * (end - start)
        turns[-1].credit, turns[-1].advantage = value, 2 * value
        start = end
    task = Task(name, name, name.ljust(64, "0"), "pick")
    return Trajectory(
        task,
        0,
        goal=f"the goal of {name}",
        token_ids=list(range(start)),
        turns=turns,
        **more,
    )


def write(folder, trajectories):
    folder.mkdir(parents=True)
    write_table(turn_table(trajectories, 1, 0), folder / TURNS_FILE)
    write_table(sequence_table(trajectories, 1, 0), folder / SEQUENCES_FILE)
    return folder / TURNS_FILE


@pytest.fixture
def sources(tmp_path):
    """Two arms that played the same first trajectory, and different second ones."""
    made = []
    for method, second in (("flatGRPO", ["look"]), ("Vine", ["go", "look"])):
        first = trajectory("one", ["go", "take"], [0.5, -1.5] if method == "Vine" else [1.0, 1.0])
        other = trajectory("two", second, [0.0] * len(second), success=True)
        path = write(tmp_path / f"rl/{method}/seed_11/round_1", [first, other])
        made.append(Source(method, 11, 1, path))
    return made


def test_arms_that_played_the_same_share_an_entry(sources):
    shared, flat, vine = collect(sources, 4)
    assert shared["credit"] == {"flatGRPO": [1.0, 1.0], "Vine": [0.5, -1.5]}
    assert shared["advantage"]["Vine"] == [1.0, -3.0]
    # Log-probs add up over a turn's tokens: one token, then two.
    assert shared["logprob"] == {ALL_ARMS: [-0.5, -1.0]}
    assert (shared["goal"], shared["outcome"], shared["task"]) == (
        "the goal of one",
        "failure",
        "one",
    )
    assert [turn["action"] for turn in shared["turns"]] == ["go", "take"]
    assert list(flat["credit"]) == ["flatGRPO"] and list(vine["credit"]) == ["Vine"]
    assert vine["outcome"] == "success"


def test_policies_that_played_the_same_have_their_own_log_probs(sources):
    path = sources[1].turns.with_name(SEQUENCES_FILE)
    table = pq.read_table(path)
    column = table.schema.get_field_index("behaviour_logprobs")
    other = pa.array([[-2.0] * 3, [-0.5] * 3], pa.list_(pa.float32()))
    write_table(table.set_column(column, "behaviour_logprobs", other), path)
    shared, *_ = collect(sources, 4)
    assert shared["logprob"] == {"flatGRPO": [-0.5, -1.0], "Vine": [-2.0, -4.0]}


def test_a_page_has_no_more_than_its_limit(sources):
    """Of more rounds than that, those of the first seeds are shown."""
    more = [
        Source(source.method, seed, 1, source.turns) for source in sources for seed in (31, 23, 11)
    ]
    entries_shown = collect(more, 2)
    assert len(entries_shown) == 1 and entries_shown[0]["seed"] == min(
        source.seed for source in more
    )
    assert set(entries_shown[0]["credit"]) == {"flatGRPO", "Vine"}


def test_a_page_has_no_more_than_its_bytes(sources):
    entries = collect(sources, 4)
    sizes = [len(json.dumps(entry, separators=(",", ":"))) for entry in entries]
    assert within(entries, sum(sizes)) == entries
    assert within(entries, sum(sizes) - 1) == entries[:2]
    assert within(entries, sizes[0] - 1) == []


def test_tables_of_two_rounds_are_noticed(sources, tmp_path):
    other = write(tmp_path / "rl/other/seed_11/round_1", [trajectory("three", ["go"], [1.0])])
    other.replace(sources[0].turns)
    with pytest.raises(UserError, match=r"round_1/turns.parquet: turns of task one do not match"):
        collect(sources, 4)


def test_an_advantage_that_is_missing_is_null(tmp_path):
    one = trajectory("one", ["go"], [1.0])
    one.turns[0].advantage = None
    path = write(tmp_path / "rl/flatGRPO/seed_11/round_1", [one])
    (entry,) = collect([Source("flatGRPO", 11, 1, path)], 1)
    assert entry["advantage"] == {"flatGRPO": [None]}
    assert data_of(render("x", [entry], LABELS))["trajectories"][0]["advantage"]


@pytest.fixture
def truth(tmp_path):
    """A measured trajectory of two turns, of which two methods credited some."""
    measured, agreement = tmp_path / "truth/round_1", tmp_path / "credit_agreement"
    write(measured, [trajectory("one", ["go", "take"], [0.0, 0.0])])
    place = {"step": [0, 0], "task_id": ["one"] * 2, "rollout": [0, 0], "turn": [0, 1]}
    place["content_hash"] = ["one".ljust(64, "0")] * 2
    numbers = {name: [0.25, -0.5] for name in NUMBERS}
    sketches = pa.FixedSizeListArray.from_arrays(pa.array([0.0] * 4, pa.float32()), 2)
    columns = {"round": [1, 1], **place, "continuations": [4, 4], **numbers, SKETCH: sketches}
    names = truth_schema(2).names
    table = pa.table({name: columns[name] for name in names}).cast(truth_schema(2))
    write_table(table, measured / "truth.parquet")
    agreement.mkdir()
    credits = pa.table(
        {"round": [1, 1, 1, 2], "step": [0] * 4, "task_id": ["one"] * 4, "rollout": [0] * 4}
        | {"turn": [0, 1, 1, 0], "method": ["Vine", "Vine", "flatGRPO", "other"]}
        | {"credit": [1.0, 2.0, 3.0, 4.0]}
    )
    write_table(credits.cast(CREDITS), agreement / "credits.parquet")
    return measured, agreement


def test_truth_stands_beside_every_methods_credit(truth):
    (entry,) = collect_truth(*truth, LABELS, 11, 1, 5)
    assert entry["truth"] == [0.25, -0.5]
    (other,) = collect_truth(*truth, ["Vine"], 11, 1, 5)
    assert other == entry | {"credit": {"Vine": [1.0, 2.0]}}
    assert entry["credit"] == {"Vine": [1.0, 2.0], "flatGRPO": [None, 3.0]}
    assert (entry["seed"], entry["round"], entry["logprob"]) == (11, 1, {ALL_ARMS: [-0.5, -1.0]})
    assert data_of(render("x", [entry], LABELS))["trajectories"][0]["truth"] == [0.25, -0.5]


@pytest.mark.parametrize("name", ["truth.parquet", "credits.parquet"])
def test_a_truth_that_cannot_be_read_is_named(truth, name):
    next(folder / name for folder in truth if (folder / name).exists()).unlink()
    with pytest.raises(UserError, match=f"{name}: (missing|no such file)"):
        collect_truth(*truth, LABELS, 11, 1, 5)


def data_of(page):
    data = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    return json.loads(data.group(1))


def test_the_page_holds_its_data_and_no_text_ends_a_script(sources):
    entries = collect(sources, 4)
    entries[0]["goal"] = "</script><script>alert(1)</script>\u2028"
    page = render("<study>", entries, LABELS)
    assert page == render("<study>", entries, LABELS)
    entries_shown = [{name: one[name] for name in one if name != "rank"} for one in entries]
    assert data_of(page) == {"labels": LABELS, "trajectories": entries_shown}
    assert "alert(1)</script>" not in page and "\u2028" not in page
    assert "<title>&lt;study&gt;: single trajectories</title>" in page
    assert not re.search(r"(src|href)=\"(?!data:)", page)


CONFIG = {"study": "fake", "labels": [["flatGRPO", "flat GRPO"], ["Vine", "Vine"]]}


def test_the_stage_writes_a_page(sources, tmp_path):
    """Also of an arm that the study does not list."""
    path = write(tmp_path / "rl/Other/seed_11/round_1", [trajectory("three", ["go"], [1.0])])
    turns = [*(source.turns for source in sources), path]
    out = tmp_path / "viewer"
    run_stage("viewer", "--config", json.dumps(CONFIG), "--turns", *turns, "--out", out)
    data = data_of((out / "index.html").read_text(encoding="utf-8"))
    assert data["labels"] == {**LABELS, "Other": "Other"}
    assert len(data["trajectories"]) == 4
