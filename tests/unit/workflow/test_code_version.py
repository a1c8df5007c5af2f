"""The hash of a stage: of the modules it really imports, and of what in them counts."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hgrpo.workflow import code_version as module
from hgrpo.workflow.code_version import PACKAGE, STAGES, contents, imported_modules

TORCH_FREE = ("config", "assets", "expert", "merge", "figures", "report")

# Each stage is imported in a fork of its own: first those that may not bring torch, from a parent
# that has not got it, then the others from one that has, which saves importing it again.
PROBE = """
import importlib, json, os, sys
free, others = json.loads(sys.argv[1])
def probe(stage):
    sys.stdout.flush()
    if os.fork():
        assert os.wait()[1] == 0, stage
        return
    importlib.import_module(f"hgrpo.cli.{stage}")
    names = sorted(n for n in sys.modules if n.split(".")[0] == "hgrpo")
    print(json.dumps([stage, names, "torch" in sys.modules]), flush=True)
    os._exit(0)
for stage in free:
    probe(stage)
import torch, transformers, peft
for stage in others:
    probe(stage)
"""


@pytest.fixture(scope="module")
def imports() -> dict[str, tuple[set[str], bool]]:
    """Stage -> (hgrpo modules that importing its command line loads, whether torch came too)."""
    others = [stage for stage in STAGES if stage not in TORCH_FREE]
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps([TORCH_FREE, others])],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {stage: (set(names), torch) for stage, names, torch in rows}


@pytest.mark.parametrize("stage", STAGES)
def test_the_hash_covers_exactly_what_the_stage_imports(imports, stage):
    loaded, _ = imports[stage]
    assert imported_modules(f"hgrpo.cli.{stage}", lazy=False) == loaded
    assert loaded <= set(contents(stage))


@pytest.mark.parametrize("stage", TORCH_FREE)
def test_stages_before_and_after_training_do_not_import_torch(imports, stage):
    assert not imports[stage][1]


def test_no_module_is_imported_by_a_computed_name():
    computed = re.compile(r"import_module|__import__|(?<![.\w])(exec|eval)\(")
    # A config names assigners and engines, and the hash is told which ones.
    kinds = {PACKAGE / "credit/kinds.py", PACKAGE / "rollout/kinds.py"}
    allowed = {Path(module.__file__)} | kinds
    found = [
        path.name
        for path in PACKAGE.rglob("*.py")
        if path not in allowed and computed.search(path.read_text())
    ]
    assert found == []


def test_a_round_depends_on_its_own_assigner_alone():
    random = set(contents("rl_round", "random"))
    assert {"hgrpo.credit.random", "hgrpo.credit.progress"} <= random
    assert "hgrpo.credit.progress" not in contents("rl_round", "flat")
    assert module.code_version("rl_round", "flat") != module.code_version("rl_round", "random")


def test_a_comparison_depends_on_the_assigners_it_compares():
    kinds = ("progress", "turnrd")
    compared = set(contents("credit_agreement", kinds))
    assert compared == set(contents("credit_agreement")).union(
        *(contents("credit_agreement", kind) for kind in kinds)
    )
    assert {"hgrpo.credit.turnrd.model", "hgrpo.credit.progress"} <= compared
    assert not [name for name in compared if name.startswith("hgrpo.credit.state_graph")]
    versions = {module.code_version("credit_agreement", some) for some in (kinds, ("progress",))}
    assert len(versions) == 2


def test_training_does_not_depend_on_the_report():
    for stage in ("sft", "rl_round", "evaluate"):
        names = contents(stage)
        assert not [name for name in names if name.startswith("hgrpo.report")]
        assert "hgrpo.study.study" not in names


@pytest.fixture
def package(tmp_path):
    """A package with a stage `train` that imports all but `unused`."""
    files = {
        "cli/train.py": "from toy.core import a\nfrom toy import late_parent\n",
        "core/a.py": '"""Doc."""\nfrom . import b\n\ndef f():\n    import toy.lazy\n    return 1\n',
        "core/b.py": "X = 1\n",
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
        (root / name).write_text(text)
    for folder in ("", "cli", "core", "core/sub", "other"):
        (root / folder / "__init__.py").touch()
    return root


def version(package: Path) -> str:
    for cached in vars(module).values():
        if hasattr(cached, "cache_clear"):
            cached.cache_clear()
    return module.code_version("train", package=package)


def test_contents_are_the_imported_modules_and_their_data(package):
    assert set(contents("train", package=package)) == {
        "toy",
        "toy.cli",
        "toy.cli.train",
        "toy.core",
        "toy.core.a",
        "toy.core.b",
        "toy.late_parent",
        "toy.lazy",
        "toy/core/data/words.txt",
    }


def test_lazy_imports_can_be_left_out(package):
    assert "toy.lazy" not in imported_modules("toy.cli.train", package, lazy=False)


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
    ],
)
def test_an_edit_that_counts_changes_the_version(package, file, text):
    before = version(package)
    (package / file).write_text(text)
    assert version(package) != before


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("core/b.py", "# why\nX = (\n    1\n)\n"),
        ("core/b.py", '"""What this is."""\n\nX = 1\n'),
        ("unused.py", "Y = 3\n"),
        ("other/words.txt", "pears\n"),
        ("core/sub/words.txt", "plums\n"),
        ("core/__pycache__/b.cpython-311.pyc", "bytes"),
    ],
)
def test_an_edit_that_cannot_change_a_result_keeps_the_version(package, file, text):
    before = version(package)
    (package / file).parent.mkdir(exist_ok=True)
    (package / file).write_text(text)
    assert version(package) == before


def test_an_import_that_is_only_for_types_is_not_run(package):
    (package / "core/b.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import toy.unused\nX = 1\n"
    )
    version(package)
    assert "toy.unused" not in imported_modules("toy.cli.train", package, lazy=False)


def test_a_missing_stage_is_an_error(package):
    with pytest.raises(FileNotFoundError):
        module.code_version("nonsense", package=package)
