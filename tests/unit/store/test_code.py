"""The hash of a job's code: of the modules it really imports, and of what in them counts."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hgrpo.errors import UserError
from hgrpo.formulas import kinds as rule_kinds
from hgrpo.games import kinds as env_kinds
from hgrpo.stages.order import STAGES
from hgrpo.store import code as module
from hgrpo.store.code import PACKAGE, closure, roots

TORCH_FREE = ("study_config", "assets", "expert", "merge", "figures", "report")

# Each stage is imported in a fork of its own, from a parent that holds neither hgrpo nor torch.
PROBE = """
import importlib, json, os, sys
for stage in json.loads(sys.argv[1]):
    sys.stdout.flush()
    if os.fork():
        assert os.wait()[1] == 0, stage
        continue
    importlib.import_module(f"hgrpo.stages.{stage}")
    names = sorted(n for n in sys.modules if n.split(".")[0] == "hgrpo")
    print(json.dumps([stage, names, "torch" in sys.modules]), flush=True)
    os._exit(0)
"""


@pytest.fixture(scope="module")
def imports() -> dict[str, tuple[set[str], bool]]:
    """Stage -> (hgrpo modules that importing its module loads, whether torch came too)."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(STAGES)],
        cwd=PACKAGE.parent,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {stage: (set(names), torch) for stage, names, torch in rows}


def job(env=None, engine=None, credit=(), rule=None) -> dict:
    """Settings that name the plug-ins of a job."""
    return {
        "env": env and {"name": env},
        "engine": engine and {"kind": engine},
        "methods": [{"credit": {"kind": kind}} for kind in credit],
        "method": {"objective": {"rule": rule}} if rule else None,
    }


def of_job(stage, *plugs, **more) -> set[str]:
    """Names of what the hash of such a job covers."""
    return set(closure(roots(stage, job(*plugs, **more))))


@pytest.mark.parametrize("stage", STAGES)
def test_planning_imports_no_torch(imports, stage):
    assert not imports[stage][1]


@pytest.mark.parametrize("stage", STAGES)
def test_a_module_that_a_stage_imports_is_covered_or_only_plans(imports, stage, monkeypatch):
    monkeypatch.setattr(module, "_SKIPPED", set())
    plug_ins = ("hgrpo.games.", "hgrpo.rollout.torch", "hgrpo.rollout.vllm", "hgrpo.credit.")
    loaded = {name for name in imports[stage][0] if not name.startswith(plug_ins)}
    # All update rules are read to find one by its name, and the hash covers that one.
    rules = closure({rule.__module__ for rule in rule_kinds.every().values()})
    assert loaded - {name for name in rules if "formulas" in name} <= of_job(stage)


@pytest.mark.parametrize("stage", TORCH_FREE)
def test_stages_before_and_after_training_reach_no_policy(stage):
    covered = of_job(stage, "alfworld", "torch")
    assert not [name for name in covered if re.match(r"hgrpo\.(policy|rollout)\.\w", name)]


def test_no_module_is_imported_by_a_computed_name():
    computed = re.compile(r"import_module|import_plug_in|__import__|(?<![.\w])(exec|eval)\(")
    # Assigners and environments are named by configs, and the hash gets their names.
    kinds = ("credit", "games", "formulas")
    allowed = {PACKAGE / f"{part}/kinds.py" for part in kinds}
    # The warm process imports other people's libraries, and no module of the package.
    allowed |= {PACKAGE / "workflow/warm.py", PACKAGE / "errors.py"}
    allowed.add(PACKAGE / "rollout/engine_kind.py")
    # It imports torch late.
    allowed.add(PACKAGE / "formulas/tensors.py")
    # The sandbox's rules and pieces are named by settings, and `sandbox_rules.run_code` covers
    # them; no stage runs one. Commands are in no hash.
    allowed |= {PACKAGE / "sandbox/rule.py", PACKAGE / "sandbox/studies/pieces.py"}
    allowed |= {PACKAGE / "cli/sandbox.py", PACKAGE / "stages/order.py"}
    names = [
        path.name
        for path in PACKAGE.rglob("*.py")
        if path not in allowed and computed.search(path.read_text(encoding="utf-8"))
    ]
    assert names == []


def test_a_round_depends_on_its_own_assigner_environment_engine_and_rule():
    covered = of_job("rl_round", "alfworld", "torch", ["random"], "PPOClip")
    assert {"hgrpo.credit.random", "hgrpo.credit.progress"} <= covered
    assert {"hgrpo.games.alfworld.env", "hgrpo.rollout.torch.decoder"} <= covered
    assert "hgrpo.rollout.torch.compiled" in covered & of_job("evaluate", "alfworld", "torch")
    assert "hgrpo/games/alfworld/domain.pddl" in covered
    others = ("hgrpo.games.webshop", "hgrpo.rollout.vllm", "hgrpo.credit.judge")
    assert not [name for name in covered if name.startswith(others)]
    assert "hgrpo.credit.progress" not in of_job("rl_round", "alfworld", "torch", ["flat"])
    tpo = of_job("rl_round", "alfworld", "torch", ["random"], "TPO")
    assert covered - tpo == {"hgrpo.formulas.clip"}
    assert tpo - covered == {f"hgrpo.formulas.{name}" for name in ("tpo", "group", "full_kl")}


@pytest.mark.parametrize("game", env_kinds.known())
def test_only_the_stages_that_make_tasks_and_demonstrations_depend_on_their_code(game):
    parts = {part: f"hgrpo.games.{game}.{part}" for part in ("assets", "expert")}
    for stage in ("assets", "expert", "rl_round", "evaluate"):
        covered = of_job(stage, game, "torch", ["flat"]) & {*parts.values()}
        assert covered == ({parts[stage]} if stage in parts else set())
    # So no other module of the game may use them: its edits would be missed.
    for path in (PACKAGE / "games" / game).glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert path.stem == "__init__" or not any(part in text for part in parts.values())


@pytest.mark.parametrize("stage", ["sft", "rl_round", "evaluate"])
def test_training_depends_neither_on_the_report_nor_on_the_workflow(stage):
    covered = of_job(stage, "alfworld", "torch", ["progress"])
    above = ("hgrpo.report", "hgrpo.workflow", "hgrpo.cli", "hgrpo.store", "hgrpo.study.study")
    assert not [name for name in covered if name.startswith(above)]


def test_the_report_loads_none_of_the_methods_credit():
    assert roots("report", job("alfworld", "torch", ["judge"], "TPO")) == ["hgrpo.stages.report"]


@pytest.fixture
def package(tmp_path):
    """A package with a stage `train` that imports all but `unused`."""
    files = {
        "cli/train.py": "from toy.core import a\nfrom toy import late_parent\n",
        "core/a.py": '"""Doc."""\nfrom . import b\n\ndef f():\n    import toy.lazy, mine, json\n',
        "core/b.py": "X = 1\n",
        "../mine.py": "import toy_tools.words\n",
        "../toy_tools/__init__.py": "",
        "../toy_tools/words.py": "WORDS = []\n",
        "../toy_tools/words.json": "[]\n",
        "lazy.py": "from toy.core.b import X\n",
        "late_parent.py": "import os, json\n",
        "unused.py": "Y = 2\n",
        "core/data/words.txt": "apple\n",
        "other/words.txt": "pear\n",
        "core/sub/words.txt": "plum\n",
    }
    root = tmp_path / "toy"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    for folder in ("", "cli", "core", "core/sub", "other"):
        (root / folder / "__init__.py").touch()
    return root


def of_toy(package: Path) -> dict[str, str]:
    """Module or data file -> hash, of what the toy package's stage imports."""
    return closure(["toy.cli.train"], package)


def test_it_covers_the_imported_modules_and_their_data(package):
    assert set(of_toy(package)) == {
        "toy",
        "toy.cli",
        "toy.cli.train",
        "toy.core",
        "toy.core.a",
        "toy.core.b",
        "toy.late_parent",
        "toy.lazy",
        "toy/core/data/words.txt",
        "mine",
        "toy_tools",
        "toy_tools.words",
        "toy_tools/words.json",
    }


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("core/b.py", "X = 2\n"),
        ("core/b.py", "if TYPE_CHECKING:\n    pass\nelse:\n    X = 1\n"),
        ("lazy.py", "from toy.core.b import X as Y\n"),
        ("core/data/words.txt", "apples\n"),
        ("core/data/more.txt", ""),
        ("../mine.py", "import toy_tools.words as words\n"),
    ],
)
def test_an_edit_that_counts_changes_the_hash(package, file, text):
    before = of_toy(package)
    (package / file).write_text(text, encoding="utf-8")
    assert of_toy(package) != before


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("core/b.py", "# why\nX = (\n    1\n)\n"),
        ("core/b.py", "if TYPE_CHECKING:\n    import toy.unused\nX = 1\n"),
        ("unused.py", "Y = 3\n"),
        ("core/sub/words.txt", "plums\n"),
        ("core/__pycache__/b.cpython-311.pyc", "bytes"),
        ("core/.b.py.swp", "bytes"),
        ("core/data/words.txt~", "apples"),
    ],
)
def test_an_edit_that_cannot_change_a_result_keeps_the_hash(package, file, text):
    before = of_toy(package)
    (package / file).parent.mkdir(exist_ok=True)
    (package / file).write_text(text, encoding="utf-8")
    assert of_toy(package) == before


def test_a_reworded_docstring_keeps_the_hash_and_an_undone_edit_brings_it_back(package):
    path = package / "core/a.py"
    text, before = path.read_text(encoding="utf-8"), of_toy(package)
    path.write_text(text.replace("Doc.", "Other words."), encoding="utf-8")
    assert of_toy(package) == before
    path.write_text(text.replace("json", "json, re"), encoding="utf-8")
    assert of_toy(package) != before
    path.write_text(text, encoding="utf-8")
    assert of_toy(package) == before


def test_a_syntax_error_names_its_file_and_line(package):
    (package / "core/b.py").write_text("X = 1\ndef (\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"core/b\.py, line 2: invalid syntax$"):
        of_toy(package)
