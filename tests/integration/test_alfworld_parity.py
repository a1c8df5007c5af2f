"""The native engine against the official one, byte for byte."""

import json
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import alfworld_parity
import pytest
from alfworld_parity import (
    GameReport,
    Mismatch,
    check_games,
    compare_walk,
    memoised,
    older_language,
    random_walk,
)
from places import SHARED

from hgrpo.errors import UserError
from hgrpo.games.alfworld.gamefile import load_compiled, read_game
from hgrpo.games.alfworld.generator import generate, write
from hgrpo.games.alfworld.grammar import Each, RuleCall, parse_symbols
from hgrpo.games.alfworld.native import CompiledGame, NativeGame
from hgrpo.games.alfworld.settings import GenerateSettings

pytestmark = pytest.mark.extra("alfworld")

DATA = SHARED / "data"
STEPS, FEW_STEPS = 200, 60


def need(folder: Path) -> Path:
    if not folder.is_dir():
        pytest.skip(f"the games in {folder} are not on this machine")
    return folder


def check(folders: list[Path], steps: int) -> None:
    compared = 0
    for report in check_games(folders, steps, stock_steps=0, seed=1, workers=2):
        assert report.mismatches == []
        compared += report.steps
    # Each game is played in both languages.
    assert compared >= 2 * steps * len(folders)


@pytest.mark.parametrize(
    "name", ["alfworld_real_game", pytest.param("alfred_games_train", marks=pytest.mark.slow)]
)
def test_games_of_the_benchmark(name):
    folder = need(DATA / name)
    games = sorted(file.parent for file in folder.rglob("game.tw-pddl"))
    # Three games are won at reset.
    check([game for game in games if "AlarmClock-None-Desk-304" not in str(game)], STEPS)


@pytest.mark.parametrize(
    ("count", "steps"), [(18, FEW_STEPS), pytest.param(60, STEPS, marks=pytest.mark.slow)]
)
def test_generated_games(tmp_path, count, steps):
    folders = []
    for split, files in generate(
        GenerateSettings(), {"train": count, "validation": 0, "test": 0}, "move", 5
    ):
        write(tmp_path / split, files)
        folders.append(tmp_path / split / files.folder)
    assert len(folders) == count
    check(folders, steps)


@pytest.fixture(scope="module")
def games(tmp_path_factory) -> dict[str, dict]:
    """A cool game and a light game, generated."""
    matches = {}
    for _, files in generate(
        GenerateSettings(), {"train": 6, "validation": 0, "test": 0}, "move", 2
    ):
        matches[files.trajectory["task_type"]] = files.game
    return {
        "cool": matches["pick_cool_then_place_in_recep"],
        "light": matches["look_at_obj_in_light"],
    }


def edited(data: dict, key: str, old: str, new: str) -> dict:
    assert old in data[key], old
    return data | {key: data[key].replace(old, new), "walkthrough": []}


# What no published game does, but a game file of the same constructs may.
VARIANTS = {
    "what was looked at": (
        "cool", "grammar", '"isclean(o:object)"', '"checked(o:object)"'),
    "one text, cool and look": ("cool", "grammar", '"cool {o} with {r}"', '"look"'),
    "one text, close and examine": ("cool", "grammar", '"close {r}"', '"examine {r}"'),
    "one text, help and inventory": ("cool", "grammar", '"help"', '"inventory"'),
    "a list in a command": (
        "cool", "grammar", '"inventory"', '"inventory [{o.name | holds(a:agent, o:object)}]"'),
    "text behind a stray brace": (
        "cool", "grammar", "You close the {r.name}.", "You close the {r.name}.} tail"),
    "white space before text": (
        "cool", "grammar", "You close the {r.name}.", "\\n \\t  You close the {r.name}."),
    "a type with a comma": (
        "cool", "pddl_domain", "(holds ?a ?o)\n  :effect (checked ?o)",
        "(or (holds ?a ?o) (exists (?l - location, ?r - receptacle) (and (atLocation ?a ?l) "
        "(receptacleAtLocation ?r ?l) (inReceptacle ?o ?r))))\n  :effect (checked ?o)"),
    "a type without a comma": (
        "cool", "pddl_domain", "(holds ?a ?o)\n  :effect (checked ?o)",
        "(or (holds ?a ?o) (exists (?l - location ?r - receptacle) (and (atLocation ?a ?l) "
        "(receptacleAtLocation ?r ?l) (inReceptacle ?o ?r))))\n  :effect (checked ?o)"),
}  # fmt: skip


def walk(data: dict, seeds=(1, 2), steps=150) -> GameReport:
    from hgrpo.games.alfworld.textworld_engine import OfficialGame

    report = GameReport("game")
    native = NativeGame(CompiledGame(data))
    with memoised():
        official = OfficialGame(data)
        for seed in seeds:
            commands = random_walk(native, random.Random(seed), steps)
            compare_walk(f"seed {seed}", commands, official, native, report)
    return report


@pytest.mark.parametrize("name", VARIANTS)
def test_unusual_grammars_and_domains(games, name):
    kind, *change = VARIANTS[name]
    report = walk(edited(games[kind], *change))
    assert report.mismatches == []
    assert report.steps == 300


@pytest.mark.parametrize("facts", ["shared spots", "things in two places", "two spots"])
def test_unusual_houses(games, facts):
    problem = games["cool"]["pddl_problem"]
    places = [line.split() for line in problem.split("(")]
    spots = [(p[1], p[2].rstrip(")")) for p in places if p[:1] == ["receptacleAtLocation"]]
    things = [p[1] for p in places if p[:1] == ["inReceptacle"]]
    extra = {
        "shared spots": [f"(receptacleAtLocation {spots[i][0]} {spots[i + 1][1]})" for i in (0, 3)],
        "things in two places": [f"(inReceptacle {thing} {spots[2][0]})" for thing in things[:3]],
        "two spots": [
            f"(receptacleAtLocation {spots[0][0]} {spots[1][1]})",
            f"(receptacleAtLocation {spots[1][0]} {spots[0][1]})",
        ],
    }[facts]
    data = edited(games["cool"], "pddl_problem", "(:init", f"(:init {' '.join(extra)}")
    assert walk(data).mismatches == []


def test_the_memoised_engine_is_the_untouched_one(games):
    from hgrpo.games.alfworld.textworld_engine import OfficialGame

    data = games["light"]
    stock, report = OfficialGame(data), GameReport("game")
    with memoised():
        quick = OfficialGame(data)
    commands = list(data["walkthrough"])
    expected = [(stock.reset(), stock.admissible_commands())]
    expected += [(stock.step(c), stock.admissible_commands()) for c in commands]
    with memoised():
        replayed = [(quick.reset(), quick.admissible_commands())]
        replayed += [(quick.step(c), quick.admissible_commands()) for c in commands]
        native = NativeGame(CompiledGame(data))
        compare_walk("walkthrough", commands, quick, native, report)
    assert replayed == expected
    assert stock.won and quick.won
    assert (report.steps, report.mismatches) == (len(commands), [])


def test_a_difference_is_found_and_ends_the_walk(games):
    data = games["cool"]
    other = edited(data, "grammar", "You are not carrying", "You do not carry")
    one, two = NativeGame(CompiledGame(data)), NativeGame(CompiledGame(other))
    report = GameReport("game")
    compare_walk("walk", ["look", "inventory", "look"], one, two, report)
    assert report.steps == 2
    assert report.mismatches == [
        Mismatch(
            "game",
            "walk",
            2,
            "inventory",
            "text",
            "You are not carrying anything.",
            "You do not carry anything.",
        )
    ]


def test_progress_from_the_official_facts_is_the_native_one(games, tmp_path):
    from hgrpo.games.alfworld.env import AlfworldEnv
    from hgrpo.games.base import Task

    for kind, task_type in (
        ("cool", "pick_cool_then_place_in_recep"),
        ("light", "look_at_obj_in_light"),
    ):
        folder = tmp_path / kind
        folder.mkdir()
        (folder / "game.tw-pddl").write_text(json.dumps(games[kind]), encoding="utf-8")
        (folder / "traj_data.json").write_text(
            json.dumps({"task_type": task_type}), encoding="utf-8"
        )
        game = load_compiled(folder)
        task = Task(kind, kind, game.content_hash, task_type)
        native, official = AlfworldEnv(tmp_path), AlfworldEnv(tmp_path, "textworld")
        assert native.reset(task) == official.reset(task)
        rng = random.Random(0)
        commands = [rng.choice(native.admissible_commands()), "nonsense", *game.walkthrough]
        gained = 0.0
        for command in commands:
            step = native.step(command)
            assert official.step(command) == step
            assert official.situation() == native.situation()
            gained += step.progress
        assert step.success
        assert gained == pytest.approx(1)


BITS = ["a", "You see", " ", "\n", "\t", ".", ", ", "#x#", "#over(o, r)#", "{o.name}", "{ o.name }",
        "{o.name|p(o:object)}", "[{o.name | p(o:object) & not_q(o:object, r:receptacle)}]",
        "{#x#}", "[{#x(o)# | p(o:object)}]", ";", "}", "]", '"', '"hi"', "<", "//", "'", "(", "\\n",
        "\u00e9"]  # fmt: skip


def test_right_hand_sides_are_split_as_the_official_parser_does():
    from textworld.envs.pddl import textgen

    def official(symbol):
        kind = type(symbol).__name__
        if kind == "TerminalSymbol":
            return symbol.symbol
        if kind == "NonterminalSymbol":
            return ("rule", symbol.symbol)
        if kind == "ListSymbol":
            return ("list", official(symbol.symbol))
        if kind == "EvalSymbol":
            return symbol.expression.strip()
        return ("each", official(symbol.expression), len((symbol.given or "").split("&")))

    def ours(symbol):
        if isinstance(symbol, str):
            return symbol
        if isinstance(symbol, RuleCall):
            return ("rule", symbol.name)
        assert isinstance(symbol, Each)
        if symbol.listed:
            return ("list", ours(replace(symbol, listed=False)))
        inner = symbol.expression
        text = ours(inner) if isinstance(inner, RuleCall) else "o.name"
        return ("each", text, max(len(symbol.query), 1))

    def joined(symbols):
        merged = []
        for symbol in symbols:
            if isinstance(symbol, str) and merged and isinstance(merged[-1], str):
                merged[-1] += symbol
            elif symbol != "":
                merged.append(symbol)
        return merged

    rng = random.Random(0)
    compared = 0
    for _ in range(4000):
        text = "".join(rng.choice(BITS) for _ in range(rng.randint(0, 5)))
        try:
            symbols = parse_symbols(text)
        except UserError:
            continue
        expected = textgen._parse_and_convert(text, rule_name="symbols")
        assert joined(map(ours, symbols)) == joined(map(official, expected)), repr(text)
        compared += 1
    assert compared > 3000


def test_command_line(games, tmp_path):
    for name, data in games.items():
        folder = tmp_path / "games" / name / "trial"
        folder.mkdir(parents=True)
        (folder / "game.tw-pddl").write_text(json.dumps(data), encoding="utf-8")
        kind = {"cool": "pick_cool_then_place_in_recep", "light": "look_at_obj_in_light"}[name]
        (folder / "traj_data.json").write_text(json.dumps({"task_type": kind}), encoding="utf-8")
    command = [sys.executable, alfworld_parity.__file__, str(tmp_path / "games")]
    command += ["--steps", "30", "--stock-steps", "5"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    walks = sum(2 * len(read_game(p.parent)["walkthrough"]) for p in tmp_path.rglob("*.tw-pddl"))
    assert done.stdout == f"games: 2\nsteps: {2 * 2 * 30 + walks + 2 * 5}\nmismatches: 0\n"


def test_older_language_changes_commands_and_answers(games):
    data = older_language(games["cool"])
    play = NativeGame(CompiledGame(data))
    play.reset()
    replies = [play.step(command) for command in data["walkthrough"]]
    assert play.won
    assert data["walkthrough"][-1].startswith("put ")
    assert replies[-1].startswith("You put the ")
