"""Assets and demonstrations of a generated shop, through the commands; and the shoppers."""

import io
import json
from contextlib import redirect_stdout
from functools import partial

import numpy as np
import pyarrow.parquet as pq
import pytest
from stage_settings import run_stage
from webshop_fixtures import write_shop

from hgrpo.archive import unpacked
from hgrpo.errors import UserError
from hgrpo.games.panels import read_panels
from hgrpo.games.webshop.env import WebshopEnv
from hgrpo.games.webshop.settings import HabitsSettings
from hgrpo.games.webshop.shopper import Reader, oracle

CONFIG = {
    "name": "webshop",
    "products": {"generate": {"products": 120}},
    "panels": {"test": 20, "validation": 10, "train": 40, "apart": True},
    "expert": {"trajectories": 60},
}


def command(name, config, **options) -> str:
    """Run a stage in this process; what it printed."""
    words = [word for key, value in options.items() for word in (f"--{key}", value)]
    printed = io.StringIO()
    with redirect_stdout(printed):
        run_stage(name, "--config", json.dumps(config), "--seed", 5, *words)
    return printed.getvalue()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of assets and one of demonstrations."""
    folder = tmp_path_factory.mktemp("shop")
    command("assets", CONFIG, out=folder / "assets")
    printed = command("expert", CONFIG, assets=folder / "assets", out=folder / "expert")
    return folder, printed


def test_panels_hold_what_was_asked_for(made):
    folder, _ = made
    panels = read_panels(folder / "assets/panels.json")
    assert {split: len(tasks) for split, tasks in panels.items()} == {
        "train": 40,
        "validation": 10,
        "test": 20,
    }
    manifest = json.loads((folder / "assets/manifest.json").read_bytes())
    assert manifest["source"] == "generated"
    assert manifest["skipped"]["its product is in another panel"] > 0


def test_the_same_seed_gives_the_same_shop(made, tmp_path):
    folder, _ = made
    command("assets", CONFIG, out=tmp_path / "again")
    for name in ("panels.json", "tasks.tar.gz"):
        again = (tmp_path / "again" / name).read_bytes()
        assert again == (folder / "assets" / name).read_bytes()


def test_demonstrations_play_back(made):
    folder, printed = made
    rows = pq.read_table(folder / "expert/trajectories.parquet").to_pylist()
    tasks = {task.task_id: task for task in read_panels(folder / "assets/panels.json")["train"]}
    assert len(rows) == 60
    env = WebshopEnv(unpacked(folder / "assets/tasks.tar.gz"))
    for row in rows:
        assert env.reset(tasks[row["task_id"]]).text == row["observations"][0]
        steps = [env.step(action) for action in row["actions"]]
        assert [step.observation.text for step in steps] == row["observations"][1:]
        assert sum(step.env_reward for step in steps) == row["score"]
        assert row["success"] == (row["score"] == 1.0)
    summary = json.loads((folder / "expert/summary.json").read_bytes())
    ceiling, expert = summary["informed"]["all"], summary["success"]["all"]
    assert ceiling["score"] > expert["score"]
    assert "ceiling: the oracle, which knows the product" in printed
    progress = summary["progress"]["expert"]
    assert progress["trajectories"] == 60
    assert 0 < progress["correlation"] < 1
    assert progress["mean_reward"] == pytest.approx(expert["score"])
    # Of the oracle all are paid 1.
    assert summary["progress"]["informed"]["correlation"] is None
    assert summary["informed_panel"] == "test"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"products": {}}, "products: set exactly one of `folder` and `generate`"),
        (
            {"products": {"generate": {}, "limit": 5}},
            "products.limit: 5 has an effect only with `folder`",
        ),
        ({"products": {"folder": "/nowhere"}}, "/nowhere/items_ins_v2.json"),
        ({"panels": {"test": 100_000}}, "panel sizes: train 0, validation 0, test "),
        (
            {"expert": {"recorded": "log.jsonl", "knows": "product"}},
            "knows: product has an effect only with a scripted shopper, without `recorded`",
        ),
    ],
)
def test_bad_settings_are_one_line(tmp_path, change, message):
    with pytest.raises(UserError) as caught:
        command("assets", CONFIG | change, out=tmp_path / "assets")
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert not (tmp_path / "assets").exists()


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop") / "assets"
    return folder, write_shop(folder)


def play(env, act, cap=20):
    actions = []
    while len(actions) < cap:
        actions.append(act())
        step = env.step(actions[-1])
        if step.done:
            return actions, step.env_reward
    return actions, 0.0


def test_the_oracle_buys_what_was_asked_for(shop):
    folder, tasks = shop
    env = WebshopEnv(folder)
    env.reset(tasks[0])
    assert play(env, partial(oracle, env.session)) == (
        [
            "search[steel travel mug]",
            "click[B0MUG]",
            "click[red]",
            "click[large]",
            "click[Buy Now]",
        ],
        1.0,
    )
    env.reset(tasks[2])
    assert play(env, partial(oracle, env.session))[0][2:] == ["click[blue]", "click[Buy Now]"]


def reader(shop, number, **habits):
    folder, tasks = shop
    env = WebshopEnv(folder)
    env.reset(tasks[number])
    sure = {"forget_word": 0, "random_pick": 0, "skip_option": 0, "look": 0}
    knobs = HabitsSettings(**(sure | habits))
    return play(env, Reader(env.session, knobs, np.random.default_rng(0)).act)


def test_a_careful_reader_finds_the_mug(shop):
    actions, paid = reader(shop, 0, content_with=0.6)
    assert actions == [
        "search[leak proof mugs red large]",
        "click[B0MUG]",
        "click[red]",
        "click[large]",
        "click[Buy Now]",
    ]
    assert paid == 1.0


def test_habits_show(shop):
    assert "click[red]" not in reader(shop, 0, content_with=0.6, skip_option=1)[0]
    assert "click[Features]" in reader(shop, 0, content_with=0.6, look=1)[0]
    # All words are forgotten, so all are searched for.
    assert reader(shop, 0, forget_word=1)[0][0] == "search[leak proof mugs red large]"
