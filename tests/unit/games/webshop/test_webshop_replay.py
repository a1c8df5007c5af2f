"""Recorded sessions against our engine: our own, and the original's where a log is given.

To compare with the original, record sessions of it (`tests/webshop_replay.py` says how), make
assets of the same data files, and run
`WEBSHOP_SESSIONS=LOG WEBSHOP_ASSETS=FOLDER python -m pytest <this file>`; with WEBSHOP_RICH=1 where
the observations are `text_rich`.
"""

import json
import os
from pathlib import Path

import pytest
from webshop_fixtures import GOAL_LIST, write_shop
from webshop_replay import compare, read_sessions

from hgrpo.archive import unpacked
from hgrpo.games.webshop.env import WebshopEnv, open_goals
from hgrpo.games.webshop.settings import WebshopSettings
from hgrpo.games.webshop.shop import open_shop

ACTIONS = [
    "search[mug]",
    "nonsense",
    "click[b0mug]",
    "click[red]",
    "click[large]",
    "click[buy now]",
]


@pytest.fixture(scope="module")
def assets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop") / "assets"
    return folder, write_shop(folder)


def recording(assets, rich=False):
    folder, tasks = assets
    observation = "text_rich" if rich else "text"
    env = WebshopEnv(folder, WebshopSettings(name="webshop", observation=observation))
    first = env.reset(tasks[0]).text
    steps = [env.step(action) for action in ACTIONS]
    if rich:
        first = "WebShop\nInstruction: \n" + GOAL_LIST[0].text + "\n[button] Search [button_]\n"
    return {
        "goal": 0,
        "actions": ACTIONS,
        "observations": [first, *(step.observation.text for step in steps)],
        "reward": steps[-1].env_reward,
    }


def differences(log, folder, rich=False):
    """Each session's first difference, or None."""
    shop, goals = open_shop(folder), open_goals(folder)
    return [
        (recorded.line, compare(recorded, shop, goals, rich)) for recorded in read_sessions(log)
    ]


def replay(tmp_path, assets, rows, rich=False):
    log = tmp_path / "log.jsonl"
    log.write_text(
        "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows),
        encoding="utf-8",
    )
    return differences(log, assets[0], rich)


@pytest.mark.skipif("WEBSHOP_SESSIONS" not in os.environ, reason="no log in WEBSHOP_SESSIONS")
def test_recorded_sessions_of_the_original():
    log = Path(os.environ["WEBSHOP_SESSIONS"])
    folder = unpacked(Path(os.environ["WEBSHOP_ASSETS"], "tasks.tar.gz"))
    results = differences(log, folder, os.environ.get("WEBSHOP_RICH") == "1")
    assert [f"{log}:{line}: {difference}" for line, difference in results if difference] == []


def test_our_own_recordings_are_alike(tmp_path, assets):
    row = recording(assets)
    short = row | {"observations": row["observations"][1:]}
    assert replay(tmp_path, assets, [row, "", short]) == [(1, None), (3, None)]
    assert replay(tmp_path, assets, [recording(assets, rich=True)], rich=True) == [(1, None)]


def test_price_limits_are_not_compared(tmp_path, assets):
    row = recording(assets)
    row["observations"] = [text.replace("30.00", "90.00") for text in row["observations"]]
    # Without the price hit: (2 + 2) / 5.
    row["reward"] = 0.8
    assert replay(tmp_path, assets, [row]) == [(1, None)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda row: row["observations"].__setitem__(
                1, row["observations"][1].replace("$20.0", "$21.0")
            ),
            "action 1, 'search[mug]': recorded ...",
        ),
        (lambda row: row.update(reward=0.6), "reward: recorded 0.6, here 1.0"),
    ],
)
def test_the_first_difference_is_named(tmp_path, assets, change, message):
    row = recording(assets)
    change(row)
    ((line, difference),) = replay(tmp_path, assets, [row])
    assert line == 1
    assert message in difference
