"""The page of single trajectories: what is on it, and that it is safe and the same every time."""

import json
import re

import numpy as np
import pytest
from report_fixtures import write_study

from hgrpo.envs.base import Task
from hgrpo.errors import UserError
from hgrpo.report.viewer import Source, collect, render
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
        turns[-1].credit, turns[-1].advantage = value, 2 * value
        start = end
    task = Task(name, name, name.ljust(64, "0"), "pick")
    return Trajectory(
        task,
        0,
        goal=f"the goal of {name}",
        token_ids=list(range(start)),
        behaviour_logprobs=[-0.5] * start,
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
    found = []
    for method, second in (("flatGRPO", ["look"]), ("Vine", ["go", "look"])):
        first = trajectory("one", ["go", "take"], [0.5, -1.5] if method == "Vine" else [1.0, 1.0])
        other = trajectory("two", second, [0.0] * len(second), success=True)
        path = write(tmp_path / f"rl/{method}/seed_11/round_1", [first, other])
        found.append(Source(method, 11, 1, path))
    return found


def test_arms_that_played_the_same_share_an_entry(sources):
    shared, flat, vine = collect(sources, 4)
    assert shared["credit"] == {"flatGRPO": [1.0, 1.0], "Vine": [0.5, -1.5]}
    assert shared["advantage"]["Vine"] == [1.0, -3.0]
    # Log-probs add up over a turn's tokens: one token, then two.
    assert shared["logprob"] == [-0.5, -1.0]
    assert (shared["goal"], shared["outcome"], shared["task"]) == (
        "the goal of one",
        "failure",
        "one",
    )
    assert [turn["action"] for turn in shared["turns"]] == ["go", "take"]
    assert list(flat["credit"]) == ["flatGRPO"] and list(vine["credit"]) == ["Vine"]
    assert vine["outcome"] == "success"


def test_every_round_gives_the_same_number(sources):
    assert len(collect(sources, 2)) == 1
    assert collect(sources, 0) == collect(sources, 2)


def test_tables_of_two_rounds_are_noticed(sources, tmp_path):
    other = write(tmp_path / "rl/other/seed_11/round_1", [trajectory("three", ["go"], [1.0])])
    other.replace(sources[0].turns)
    with pytest.raises(UserError, match="no turns of task one"):
        collect(sources, 4)


def test_missing_numbers_are_null(tmp_path):
    one = trajectory("one", ["go"], [1.0])
    one.turns[0].advantage = None
    path = write(tmp_path / "rl/flatGRPO/seed_11/round_1", [one])
    (entry,) = collect([Source("flatGRPO", 11, 1, path)], 1)
    assert entry["advantage"] == {"flatGRPO": [None]}


def data_of(page):
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    return json.loads(found.group(1))


def test_the_page_holds_its_data_and_no_text_ends_a_script(sources):
    entries = collect(sources, 4)
    entries[0]["goal"] = "</script><script>alert(1)</script>\u2028"
    page = render("<study>", entries, LABELS)
    assert page == render("<study>", entries, LABELS)
    assert data_of(page) == {"labels": LABELS, "trajectories": entries}
    assert "alert(1)</script>" not in page and "\u2028" not in page
    assert "<title>&lt;study&gt;: single trajectories</title>" in page
    assert not re.search(r"(src|href)=\"(?!data:)", page)


def test_numbers_that_are_not_finite_are_refused(sources):
    entries = collect(sources, 4)
    entries[0]["return"] = float(np.nan)
    with pytest.raises(ValueError, match="not JSON compliant"):
        render("x", entries, LABELS)


def test_a_studys_rounds_are_read(tmp_path):
    study = write_study(tmp_path, seeds=(11,), rounds=2, steps=2)
    paths = study.files("rl/*/*/round_1/turns.parquet")
    sources = [Source(path.parts[-4], 11, 1, path) for path in paths]
    entries = collect(sources, 60)
    assert {method for entry in entries for method in entry["credit"]} == {
        "flatGRPO",
        "Progressive",
        "RandomCredit",
    }
