"""Environments as plug-ins: found by folder, each bringing its settings, files, cut and tail."""

import hashlib
import json
import subprocess
import sys

import pytest
from places import PROJECT

import hgrpo.games
from hgrpo.agent.tokenizer import train_tokenizer
from hgrpo.errors import UserError
from hgrpo.games.base import Observation, Step, Task
from hgrpo.games.demonstration import play, replayed, shared_out
from hgrpo.games.environment import PLAIN, UserFile
from hgrpo.games.kinds import known, load
from hgrpo.games.webshop.data import OFFICIAL
from hgrpo.stages.sections import environment_settings

HOUSE = [
    "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly "
    "around you, you see a countertop 2, a drawer 1, and a sinkbasin 1.\n\nYour task is to: "
    "put a clean mug in countertop.",
    "You arrive at countertop 2. On the countertop 2, you see a mug 1, and a soapbottle 3.",
    "You pick up the mug 1 from the countertop 2.",
    "Nothing happens.",
    "take mug 1 from countertop 2",
    "clean mug 1 with sinkbasin 1",
    "move mug 1 to countertop 2",
    "go to countertop 2",
]
SHOP = [
    "WebShop [SEP] Instruction: [SEP] Find me a Red mug with size: large, and price lower than "
    "30.00 dollars [SEP] Search",
    "Instruction: [SEP] Find me a red mug [SEP] Back to Search [SEP] Page 1 (Total results: 12) "
    "[SEP] Next > [SEP] B0KAMO [SEP] Acme's Mug, 2 Pack [SEP] $20.0",
    "search[red mug large]",
    "click[b0kamo]",
    "click[Buy Now]",
    "Price: $12.49 [SEP] Rating: N.A. [SEP] Description [SEP] caf\u00e9",
]


class Walk:
    """A corridor: `go` takes a step, the third step pays 1 and ends the episode."""

    def reset(self, task):
        self.steps = 0
        return Observation("walk", "start")

    def step(self, action):
        self.steps += action == "go"
        done = self.steps == 3
        gain = 0.25 if action == "go" else 0.0
        text = Observation("walk", f"at {self.steps}")
        return Step(text, float(done), gain, done, done, {"admissible": action == "go"})


def task(name="t"):
    return Task(name, "p", "h", "x")


def test_every_folder_brings_an_environment_named_like_it():
    folders = {path.parent.name for path in (PROJECT / "hgrpo/games").glob("*/__init__.py")}
    assert set(known()) == folders
    for name in known():
        environment = load(name)
        assert environment.name == name
        assert environment.Settings.model_fields["name"].annotation.__args__ == (name,)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "mine.yaml: name: unknown environment None; known: "),
        (
            {"name": "alfwrld"},
            "mine.yaml: name: unknown environment 'alfwrld'; did you mean 'alfworld'?",
        ),
        ({"name": "chores", "kinds": None}, "mine.yaml: kinds: "),
    ],
)
def test_a_mistaken_environment_is_one_line(data, message):
    with pytest.raises(UserError) as caught:
        environment_settings(data, "mine.yaml")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nosuchmodule\n", "ModuleNotFoundError: .*nosuchmodule.* .__init__.py, line 1.$"),
        ("ENVIRONMENT = 7\n", "ENVIRONMENT must be an instance of Environment"),
    ],
)
def test_a_broken_environment_is_one_line(monkeypatch, tmp_path, text, message):
    name = f"broken{abs(hash(text))}"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(hgrpo.games, "__path__", [*hgrpo.games.__path__, str(tmp_path)])
    with pytest.raises(UserError, match=message):
        load(name)


def test_reading_settings_imports_no_engine():
    code = (
        "import sys, json; from hgrpo.games.kinds import known, load\n"
        "for name in known(): load(name)\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    loaded = json.loads(done.stdout)
    assert not {"torch", "numpy", "pyarrow", "tokenizers"} & set(loaded)
    modules = {
        name for name in loaded if name.startswith(tuple(f"hgrpo.games.{e}." for e in known()))
    }
    assert modules == {f"hgrpo.games.{name}.settings" for name in known()}


SPLITS = tuple(f"{split}/**/game.tw-pddl" for split in ("train", "valid_seen", "valid_unseen"))


def official(path):
    """A file of the shop's folder that is downloaded, and whose hash is known."""
    known = OFFICIAL[path.rpartition("/")[2]].sha256
    return UserFile("assets", "products.folder", path, made=True, sha256=known)


@pytest.mark.parametrize(
    ("data", "files"),
    [
        ({"name": "alfworld", "games": {"generate": {}}}, []),
        (
            {"name": "alfworld", "games": {"folder": "$A", "download": True}},
            [UserFile("assets", "games.folder", "$A", made=True, holds=SPLITS)],
        ),
        (
            {
                "name": "webshop",
                "goals": "human",
                "products": {"folder": "$W", "download": True},
                "expert": {"recorded": "$W/all_trajs.zip"},
            },
            [
                *(official(f"$W/{name}") for name in ("items_ins_v2.json", "items_shuffle.json")),
                official("$W/items_human_ins.json"),
                UserFile("expert", "expert.recorded", "$W/all_trajs.zip", made=True),
            ],
        ),
        (
            {
                "name": "webshop",
                "products": {"folder": "$W", "download": True, "items_file": "mine.json"},
                "expert": {"recorded": "mine.jsonl"},
            },
            [
                official("$W/items_ins_v2.json"),
                UserFile("assets", "products.folder", "$W/mine.json"),
                UserFile("expert", "expert.recorded", "mine.jsonl"),
            ],
        ),
    ],
)
def test_the_users_own_files(data, files):
    settings = environment_settings(data, "mine.yaml")
    assert load(settings.name).user_files(settings) == files
    assert (settings.source == "folder") == bool(files)


@pytest.mark.parametrize(
    ("name", "texts", "repeats", "max_vocab", "digest"),
    [
        ("alfworld", HOUSE, 3, 400, "66a908c2c6f2aba1"),
        ("webshop", SHOP, 1, 300, "554a469971353cf8"),
    ],
)  # fmt: skip
def test_a_cut_makes_the_tokenizer_that_it_always_made(name, texts, repeats, max_vocab, digest):
    made = train_tokenizer(texts * repeats + texts[:3], max_vocab, load(name).cut)
    assert hashlib.sha256(made.to_str().encode()).hexdigest()[:16] == digest


def test_the_plain_cut_keeps_words_and_numbers_whole():
    made = train_tokenizer(["Open the red door, you've 12 coins."] * 2, 400, PLAIN)
    tokens = made.encode("Open the red door, you've 12 coins.").tokens
    assert tokens == ["Open", "Ġthe", "Ġred", "Ġdoor", ",", "Ġyou've", "Ġ12", "Ġcoins", "."]
    assert made.decode(made.encode("Ö 7\n").ids) == "Ö 7\n"


def test_a_step_that_is_no_step_names_the_environment():
    class Broken(Walk):
        def step(self, action):
            return None

    env = Broken()
    with pytest.raises(UserError, match=r"Broken\.step: expected a Step, not NoneType$"):
        play(env, task(), env.reset(task()), "me", replayed(["go"]), 10)


def test_an_episode_becomes_a_row():
    env = Walk()
    opening = env.reset(task())
    played = play(env, task(), opening, "me", replayed(["go", "no", "go", "go", "go"]), 10)
    assert played.row == {
        "task_id": "t",
        "content_hash": "h",
        "task_type": "x",
        "source": "me",
        "goal": "walk",
        "observations": ["start", "at 1", "at 1", "at 2", "at 3"],
        "actions": ["go", "no", "go", "go"],
        "success": True,
        "score": 1.0,
        "n_turns": 4,
    }
    assert (played.progress, played.refused) == (0.75, 1)


@pytest.mark.parametrize(
    ("actions", "cap", "turns"), [(["go", "go"], 10, 2), (["go", "go", "go"], 2, 2)]
)
def test_an_episode_ends_with_its_player_or_at_the_cap(actions, cap, turns):
    env = Walk()
    row = play(env, task(), env.reset(task()), "me", replayed(actions), cap).row
    assert (row["n_turns"], row["success"], row["score"]) == (turns, False, 0.0)


def test_trajectories_are_shared_out_over_the_panel():
    panel = [task("a"), task("b"), task("c")]
    pairs = [(each.task_id, repetition) for each, repetition in shared_out(5, panel)]
    assert pairs == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("c", 0)]
