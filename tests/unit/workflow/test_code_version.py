"""The hash of a stage: of the modules it really imports, and of what in them counts."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hgrpo.errors import UserError
from hgrpo.stages.order import STAGES, load
from hgrpo.workflow import code_version as module
from hgrpo.workflow.code_version import (
    PACKAGE,
    code_of,
    contents,
    modules_of,
    package_digest,
    plug_ins,
)

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
    methods = [{"credit": {"kind": kind}} for kind in credit]
    method = {"objective": {"rule": rule}} if rule else None
    return {
        "env": env and {"name": env},
        "engine": engine and {"kind": engine},
        "methods": methods,
        "method": method,
    }


def of_job(stage, *plugs, **more):
    """Names of what the hash of such a job covers."""
    return set(modules_of(stage, job(*plugs, **more)))


@pytest.mark.parametrize("stage", STAGES)
def test_planning_imports_no_torch(imports, stage):
    assert not imports[stage][1]


@pytest.mark.parametrize("stage", TORCH_FREE)
def test_stages_before_and_after_training_reach_no_torch(stage):
    covered = of_job(stage, "alfworld", "torch")
    assert not [name for name in covered if re.match(r"hgrpo\.(learning|policy|rollout)\b", name)]


@pytest.mark.parametrize("stage", STAGES)
def test_a_module_that_a_stage_imports_is_covered_or_only_plans(imports, stage, monkeypatch):
    monkeypatch.setattr(module, "_SKIPPED", set())
    assert imports[stage][0] - plug_in_modules() <= of_job(stage)


def plug_in_modules() -> set[str]:
    """Modules of plug-ins, which are loaded by name, and counted by name."""
    kinds = ("hgrpo.envs.alfworld", "hgrpo.envs.webshop", "hgrpo.rollout.torch")
    kinds += ("hgrpo.rollout.vllm", "hgrpo.credit.", "hgrpo.formulas.")
    names = [
        str(path.relative_to(PACKAGE.parent).with_suffix("")).replace("/", ".")
        for path in PACKAGE.rglob("*.py")
    ]
    names = {name.removesuffix(".__init__") for name in names}
    return {name for name in names if name.startswith(kinds)}


def test_no_module_is_imported_by_a_computed_name():
    computed = re.compile(r"import_module|import_plug_in|__import__|(?<![.\w])(exec|eval)\(")
    # Assigners and environments are named by configs, and the hash is told which ones they are.
    kinds = [PACKAGE / f"{part}/kinds.py" for part in ("credit", "envs", "formulas", "rollout")]
    # The warm process imports other people's libraries, and no module of the package.
    warm = PACKAGE / "workflow/warm/server.py"
    allowed = {*kinds, warm, PACKAGE / "config/plug_in.py", PACKAGE / "stages/order.py"}
    # The sandbox's rules and pieces are named by settings, and `sandbox_rules.run_code` covers
    # them; no stage runs one. Commands are in no hash.
    allowed |= {PACKAGE / "formulas/tensors.py", PACKAGE / "sandbox/studies/pieces.py"}
    allowed |= {PACKAGE / "cli/sandbox.py"}
    found = [
        path.name
        for path in PACKAGE.rglob("*.py")
        if path not in allowed and computed.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_a_round_depends_on_its_own_assigner_environment_and_engine():
    covered = of_job("rl_round", "alfworld", "torch", ["random"])
    assert {"hgrpo.credit.random", "hgrpo.credit.progress"} <= covered
    assert {"hgrpo.envs.alfworld.env", "hgrpo.rollout.torch.decoder"} <= covered
    assert "hgrpo.rollout.torch.compiled" in covered & of_job("evaluate", "alfworld", "torch")
    assert "hgrpo/envs/alfworld/domain.pddl" in covered
    others = ("hgrpo.envs.webshop", "hgrpo.rollout.vllm", "hgrpo.credit.judge")
    assert not [name for name in covered if name.startswith(others)]
    assert "hgrpo.credit.progress" not in of_job("rl_round", "alfworld", "torch", ["flat"])


@pytest.mark.parametrize(
    ("changed", "value"),
    [("env", "webshop"), ("engine", "vllm"), ("credit", ["flat"]), ("rule", "TPO")],
)
def test_the_hash_follows_each_plug_in(changed, value):
    chosen = {"env": "alfworld", "engine": "torch", "credit": ["random"], "rule": "PPOClip"}
    before = code_of("rl_round", job(**chosen))
    assert code_of("rl_round", job(**chosen)) == before
    assert code_of("rl_round", job(**chosen | {changed: value})) != before
    assert code_of("evaluate", job(**chosen)) != before


def test_a_stage_depends_on_the_capabilities_that_it_uses():
    play, make = of_job("rl_round", "alfworld", "torch"), of_job("assets", "alfworld")
    assert "hgrpo.envs.alfworld.generator" in make
    assert not {"hgrpo.envs.alfworld.generator", "hgrpo.envs.alfworld.expert"} & play
    judged = of_job("rl_round", "alfworld", "torch", ["judge"])
    assert "hgrpo.envs.alfworld.judge" in judged - play
    base = of_job("base", None, "torch")
    assert "hgrpo.rollout.torch" in base and "hgrpo.rollout.torch.engine" not in base


def test_a_round_depends_on_its_own_update_rule():
    clip, tpo = (
        of_job("rl_round", "alfworld", "torch", ["flat"], rule) for rule in ("PPOClip", "TPO")
    )
    assert "hgrpo.formulas.tpo" in tpo - clip and "hgrpo.formulas.aspo" not in clip | tpo


def test_a_comparison_depends_on_the_assigners_it_compares():
    compared = of_job("credit_agreement", credit=("progress", "turnrd"))
    assert {"hgrpo.credit.turnrd.model", "hgrpo.credit.progress"} <= compared
    assert not [name for name in compared if name.startswith("hgrpo.credit.state_graph")]


@pytest.mark.parametrize("stage", ["sft", "rl_round", "evaluate"])
def test_training_depends_neither_on_the_report_nor_on_the_workflow(stage):
    covered = of_job(stage, "alfworld", "torch", ["progress"])
    above = ("hgrpo.report", "hgrpo.workflow", "hgrpo.cli", "hgrpo.study.study")
    assert not [name for name in covered if name.startswith(above)]


def test_settings_name_only_the_plug_ins_that_a_stage_loads():
    settings = job("alfworld", "torch", ["flat"], "TPO")
    roots, uses = plug_ins("rl_round", settings)
    plugs = ("credit.flat", "formulas.tpo", "envs.alfworld", "rollout.torch")
    assert roots == [f"hgrpo.{name}" for name in ("stages.rl_round", *plugs)]
    assert uses == {"factory", "make", "Settings"}
    # The report shows the methods' credit; it loads none.
    assert plug_ins("report", settings) == (["hgrpo.stages.report"], {"Settings"})


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


def version(package: Path, root: str = "toy.cli.train", uses=frozenset()) -> dict[str, str]:
    for cached in vars(module).values():
        if hasattr(cached, "cache_clear"):
            cached.cache_clear()
    return contents([root], uses, package)


def test_contents_are_the_imported_modules_and_their_data(package):
    assert set(version(package)) == {
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
        ("core/b.py", "X = 1\nZ = None\n"),
        ("core/b.py", "X = '1'\n"),
        ("lazy.py", "from toy.core.b import X as Y\n"),
        ("core/data/words.txt", "apples\n"),
        ("core/__init__.py", "VERSION = 1\n"),
        ("core/data/more.txt", ""),
        ("../mine.py", "import toy_tools.words as words\n"),
        ("../toy_tools/words.json", "[1]\n"),
    ],
)
def test_an_edit_that_counts_changes_the_version(package, file, text):
    before = version(package), package_digest.__wrapped__(package)
    (package / file).write_text(text, encoding="utf-8")
    assert version(package) != before[0]
    assert package_digest.__wrapped__(package) != before[1]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("core/b.py", "# why\nX = (\n    1\n)\n"),
        ("core/b.py", '"""What this is."""\n\nX = 1\n'),
        ("unused.py", "Y = 3\n"),
        ("other/words.txt", "pears\n"),
        ("core/sub/words.txt", "plums\n"),
        ("core/__pycache__/b.cpython-311.pyc", "bytes"),
        ("core/.b.py.swp", "bytes"),
        ("core/data/words.txt~", "apples"),
    ],
)
def test_an_edit_that_cannot_change_a_result_keeps_the_version(package, file, text):
    before = version(package)
    (package / file).parent.mkdir(exist_ok=True)
    (package / file).write_text(text, encoding="utf-8")
    assert version(package) == before


def test_an_import_that_is_only_for_types_is_not_run(package):
    (package / "core/b.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import toy.unused\nX = 1\n",
        encoding="utf-8",
    )
    assert "toy.unused" not in version(package)


@pytest.mark.parametrize(
    ("text", "one", "other", "counts"),
    [
        ("class S(Strict):\n    lr: float = {}\n", "1", "2", False),
        ("class S(Strict):\n    lr: float = Field(1, description={})\n", "'a'", "'b'", False),
        ("class S(CreditSettings):\n    lr: float = {}\n", "1", "2", False),
        ("class S(CreditSettings):\n    _first: float = {}\n", "1", "2", True),
        ("class S(Strict):\n    lr: {} = 1\n", "float", "int", True),
        ("class S(Strict):\n    reads: ClassVar[bool] = {}\n", "True", "False", True),
        ("class S(Strict):\n    def f(self):\n        x: int = {}\n", "1", "2", True),
        ("class Weights:\n    late: float = {}\n", "1", "2", True),
        ("class Mine(CreditAssigner):\n    late: float = {}\n", "1", "2", True),
        ("ROOMS: int = {}\n", "1", "2", True),
        ("@dataclass\nclass R:\n    stands_in: int = {}\n", "1", "2", True),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    LATE = {}\n", "1", "2", True),
    ],
)
def test_of_settings_all_but_the_defaults_count(package, text, one, other, counts):
    found = {}
    for name in ("settings", "other"):
        (package / "core/a.py").write_text(f"from toy.core import {name}\n", encoding="utf-8")
        (package / f"core/{name}.py").write_text(text.format(one), encoding="utf-8")
        before = version(package)
        (package / f"core/{name}.py").write_text(text.format(other), encoding="utf-8")
        found[name] = version(package) != before
    assert found == {"settings": counts, "other": True}


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("self.helper()", "self.helper(1)", True),
        ("return 2", "return 3", True),
        ("toy.lazy", "toy.unused", False),
        ("demonstrate(self)", "demonstrate(self, seed)", False),
        ("GAME = 1", "GAME = 2", True),
        ("def ceiling(game)", "def ceiling(play)", True),
        ("return game", "return not game", True),
    ],
)
def test_of_a_plug_in_the_capabilities_of_other_stages_do_not_count(package, old, new, counts):
    text = (
        "class Game:\n    def judge_text(self, game):\n        return game\n"
        "class Own(Environment):\n"
        "    def factory(self):\n        return self.helper()\n"
        "    def demonstrate(self):\n        import toy.lazy\n"
        "    def helper(self):\n        return 2\n"
        "def ceiling(game):\n    pass\nGAME = 1\n"
    )
    (package / "plug.py").write_text(text, encoding="utf-8")
    before = version(package, "toy.plug", frozenset({"factory"}))
    assert "toy.lazy" not in before
    assert "toy.lazy" in version(package, "toy.plug", frozenset({"demonstrate"}))
    (package / "plug.py").write_text(text.replace(old, new), encoding="utf-8")
    assert (version(package, "toy.plug", frozenset({"factory"})) != before) == counts


def test_a_capability_that_a_game_calls_in_play_counts(package):
    text = (
        "class Own(Environment):\n"
        "    def factory(self):\n        from toy.plug.game import Game\n"
        "    def worths(self, game):\n        return 1\n"
    )
    game = "from . import OWN\nclass Game:\n    def step(self):\n        return OWN.worths(0)\n"
    (package / "plug").mkdir()
    (package / "plug/__init__.py").write_text(text, encoding="utf-8")
    (package / "plug/game.py").write_text(game, encoding="utf-8")
    before = version(package, "toy.plug", frozenset({"factory"}))
    (package / "plug/__init__.py").write_text(
        text.replace("return 1", "return -7"), encoding="utf-8"
    )
    assert version(package, "toy.plug", frozenset({"factory"})) != before


@pytest.mark.parametrize(
    ("edit", "counts"),
    [
        ("RESOURCES = {'mem_mb': 1}\n", False),
        ("def inputs(study, job):\n    import hgrpo.report.viewer\n", False),
        ("def helper():\n    import hgrpo.report.viewer\n", True),
    ],
)
def test_of_a_stage_what_only_plans_does_not_count(tmp_path, edit, counts):
    edited = tmp_path / "hgrpo"
    shutil.copytree(PACKAGE, edited, ignore=shutil.ignore_patterns("__pycache__"))
    with (edited / "stages/rl_round.py").open("a", encoding="utf-8") as handle:
        handle.write(edit)
    roots = ["hgrpo.stages.rl_round"]
    assert (contents(roots, package=edited) != contents(roots)) == counts


def test_a_syntax_error_names_its_file_and_line(package):
    (package / "core/b.py").write_text("X = 1\ndef (\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"core/b\.py, line 2: invalid syntax$"):
        version(package)


def test_a_missing_stage_is_an_error():
    with pytest.raises(KeyError):
        code_of("nonsense", {})


def test_every_stage_has_what_a_stage_must_have():
    parts = {"FOLDER", "JOB", "OUTPUTS", "RESOURCES", "Settings", "Paths"}
    parts |= {"from_study", "inputs", "run"}
    for stage in STAGES:
        assert parts <= vars(load(stage)).keys(), stage
