"""People's trajectories as demonstrations: matched to goals, played again, or left out."""

import json
from collections import Counter
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from stage_settings import run_stage
from webshop_fixtures import GOAL_LIST, items, write_shop
from webshop_logs import done, index, item, results, sub, write

from hgrpo.archive import pack
from hgrpo.games.base import Task
from hgrpo.games.kinds import load
from hgrpo.games.panels import write_panels
from hgrpo.games.webshop.env import GOALS, WebshopEnv
from hgrpo.games.webshop.expert import demonstrate
from hgrpo.games.webshop.tables import goal_hash, write_goals
from hgrpo.stages.sections import environment_settings

RED, POT, BLUE = GOAL_LIST
CHEAP = replace(RED, text='i want a "Cheap"  mug, and price lower than 40.00 dollars')
ANY, SHARED = (
    [replace(RED, text=f"{wish}, and price lower than {limit}.00 dollars") for limit in (30, 40)]
    for wish in ("any mug", "a shared mug")
)
SPARE = replace(RED, text="a spare mug")
# A goal may stand twice, word for word; a panel has it once.
NUMBERED = [RED, POT, BLUE, CHEAP, *ANY, *SHARED, SPARE, CHEAP]
SEARCH = ["travel", "mug"]
# Options in another order than the page's, a tab, and the mug twice.
SHOPPING = [
    index(),
    results(SEARCH, asins=("B0MUG",)),
    item("B0MUG", SEARCH),
    sub("Features", "B0MUG", SEARCH),
    item("B0MUG", SEARCH),
    results(SEARCH, asins=("B0MUG",)),
    item("B0MUG", SEARCH),
    item("B0MUG", SEARCH, size="large"),
    item("B0MUG", SEARCH, size="large", color="red"),
    done("B0MUG", reward=1.0, size="large", color="red"),
]
ACTIONS = [
    "search[travel mug]",
    "click[B0MUG]",
    "click[Features]",
    "click[< Prev]",
    "click[< Prev]",
    "click[B0MUG]",
    "click[large]",
    "click[red]",
    "click[Buy Now]",
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Assets with their panels."""
    folder = tmp_path_factory.mktemp("shop") / "assets"
    write_shop(folder)
    write_goals(folder / GOALS, NUMBERED)
    stock = items()
    tasks = [
        Task(f"goal-{i}", str(i), goal_hash(goal, stock[goal.row]), "kitchen")
        for i, goal in enumerate(NUMBERED)
    ]
    panels = {
        "train": [tasks[0], *tasks[3:7]],
        "validation": [tasks[2]],
        "test": [tasks[1], tasks[7]],
    }
    write_panels(folder / "panels.json", panels)
    pack(folder, load("webshop").task_files, folder / "tasks.tar.gz")
    return folder, panels


def asking(goal: str, rows: list[dict] = SHOPPING) -> list[dict]:
    return [row | {"goal": {"instruction_text": goal}} for row in rows]


def config(recorded, **expert) -> dict:
    return {
        "name": "webshop",
        "products": {"generate": {}},
        "expert": {"recorded": str(recorded)} | expert,
    }


def played(shop, tmp_path, *sessions, **expert) -> tuple[list[dict], dict]:
    """Rows and counts of session logs, in their order."""
    folder, panels = shop
    logs = tmp_path / "logs"
    logs.mkdir()
    for number, rows in enumerate(sessions):
        write(logs / f"{number:03}.jsonl", rows)
    counts: Counter[str] = Counter()
    env = environment_settings(config(logs, **expert), "test")
    return list(demonstrate(env, folder, panels, 0, counts)), dict(counts)


def test_a_log_becomes_rows_of_this_shop_s_pages(shop, tmp_path):
    folder, panels = shop
    log = write(tmp_path / "s1.jsonl", asking(RED.text.replace("30.00", "70.00")))
    out = tmp_path / "expert"
    run_stage("expert", "--config", json.dumps(config(log)), "--assets", folder, "--out", out)
    (row,) = pq.read_table(out / "trajectories.parquet").to_pylist()
    env = WebshopEnv(folder)
    opening = env.reset(panels["train"][0])
    steps = [env.step(action) for action in ACTIONS]
    assert row == {
        "task_id": "goal-0",
        "content_hash": panels["train"][0].content_hash,
        "task_type": "kitchen",
        "source": "human",
        "goal": RED.text,
        "observations": [opening.text, *(step.observation.text for step in steps)],
        "actions": ACTIONS,
        "success": True,
        "score": 1.0,
        "n_turns": len(ACTIONS),
    }
    assert all(step.info["admissible"] for step in steps)
    summary = json.loads((out / "summary.json").read_bytes())
    assert summary["sources"] == {"human": 1}
    assert summary["skipped"] == {}
    (file,) = summary["data_files"]
    assert (file["name"], file["size"]) == ("s1.jsonl", log.stat().st_size)


@pytest.mark.parametrize(
    ("goal", "reason"),
    [
        (POT.text, "its goal is on the test panel"),
        (BLUE.text.replace("40.00", "50.00"), "its goal is on the validation panel"),
        (SHARED[0].text, "its goal is on the test panel"),
        (SPARE.text, "its goal is on no panel"),
        ("any mug", "its instruction is that of several goals"),
        ("a green mug", "its instruction is not one of this shop's"),
    ],
)
def test_only_goals_of_the_training_panel_are_used(shop, tmp_path, goal, reason):
    rows, counts = played(shop, tmp_path, asking(goal), asking(RED.text))
    assert [row["task_id"] for row in rows] == ["goal-0"]
    assert counts == {f"left out: {reason}": 1}


@pytest.mark.parametrize(
    "goal",
    [CHEAP.text, "i want a cheap mug", " I want a 'cheap' mug, and price lower than 9.50 dollars"],
)
def test_limits_capitals_quotes_and_blanks_do_not_part_goals(shop, tmp_path, goal):
    rows, counts = played(shop, tmp_path, asking(goal))
    assert [row["task_id"] for row in rows] == ["goal-3"]
    assert rows[0]["goal"] == CHEAP.text
    assert not counts


def test_a_trajectory_that_cannot_be_followed_here_is_left_out(shop, tmp_path):
    # The log has a product on a page that does not list it here.
    elsewhere = [
        index(),
        results(["candle"], asins=("B0MUG",)),
        item("B0MUG", ["candle"]),
        done("B0MUG"),
    ]
    rows, counts = played(shop, tmp_path, asking(RED.text, elsewhere), asking(RED.text))
    assert len(rows) == 1
    assert counts == {"left out: an action that this shop does not admit": 1}


@pytest.mark.parametrize(
    ("reward", "differs"),
    # Two attributes, two options and a price in the limit: without that 0.8.
    [(1.0, False), (0.8, False), (0.6, True)],
)
def test_another_reward_than_the_recorded_is_counted(shop, tmp_path, reward, differs):
    bought = done("B0MUG", reward=reward, size="large", color="red")
    rows, counts = played(shop, tmp_path, asking(RED.text, [*SHOPPING[:-1], bought]))
    assert [row["score"] for row in rows] == [1.0]
    assert counts == ({"reward other than the recorded one: kept": 1} if differs else {})


def test_nothing_is_compared_of_a_trajectory_that_is_cut(shop, tmp_path):
    rows, counts = played(shop, tmp_path, asking(RED.text), turn_cap=3)
    assert [(row["actions"], row["score"]) for row in rows] == [(ACTIONS[:3], 0.0)]
    assert counts == {"cut at expert.turn_cap": 1}


def test_trajectories_are_capped_and_those_that_return_little_are_counted(shop, tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    for number, turns in enumerate((3, 5, 10, 10)):
        write(logs / f"{number}.jsonl", asking(RED.text, SHOPPING[:turns]))
    settings = config(logs, trajectories=3, min_return=0.5)
    out = tmp_path / "expert"
    run_stage("expert", "--config", json.dumps(settings), "--assets", shop[0], "--out", out)
    rows = pq.read_table(out / "trajectories.parquet").to_pylist()
    assert [row["actions"] for row in rows] == [ACTIONS]
    summary = json.loads((out / "summary.json").read_bytes())
    assert summary["sources"] == {"human": 1}
    assert summary["skipped"] == {"return below expert.min_return": 2}


def test_the_imitation_file(shop, tmp_path):
    folder, panels = shop
    states = [f"WebShop\nInstruction: \n{RED.text.lower()}\n[button] Search [button_]\n", "", ""]
    actions = ["search[Travel [steel] Mug]", "click[b0mug]", "click[buy now]"]
    log = write(tmp_path / "il.jsonl", [{"states": states, "actions": actions}])
    env = environment_settings(config(log), "test")
    (row,) = demonstrate(env, folder, panels, 0, Counter())
    assert row["actions"] == ["search[travel steel mug]", "click[B0MUG]", "click[Buy Now]"]
    assert row["score"] == pytest.approx(0.6)
